/* A stand-in libnvidia-ml.so.1: answers NVML's C interface from a scenario file named by NVML_STANDIN_SCENARIO.
 *
 * Lines of a scenario are "key = value"; "#" starts a comment. Keys of one card are "gpu0.name"; "gpu.name" holds for
 * every card without a line of its own. "error.FUNCTION = CODE" makes a call fail, "hang.FUNCTION = 1" makes it never
 * return, "slow.FUNCTION = MS" makes it late, "crash.FUNCTION = 1" kills the caller; all may stand behind "gpuN." too. What a scenario does not give is "Not Supported", as on a real card.
 * The file is read again whenever it changed and the cards are counted, so that a test can change a live machine.
 * Struct layouts are those that nvidia-ml-py declares for the same calls.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, INSUFFICIENT = 7, NOT_FOUND = 6, TIMEOUT = 10, UNKNOWN = 999 };
enum { MAX_LINES = 4096, MAX_GPUS = 64 };

typedef struct { char key[96]; char value[160]; } Line;
typedef struct { int index; } Device;
typedef Device *nvmlDevice_t;

static Line lines[MAX_LINES];
static int line_count;
static struct timespec read_at;
static off_t read_size;
static ino_t read_file;
static Device devices[MAX_GPUS];

static char *trim(char *text) {
    while (*text == ' ' || *text == '\t') text++;
    char *end = text + strlen(text);
    while (end > text && strchr(" \t\r\n", end[-1])) *--end = 0;
    return text;
}

static int load(void) {
    const char *path = getenv("NVML_STANDIN_SCENARIO");
    struct stat info;
    if (!path || stat(path, &info)) return 0;
    if (line_count && read_file == info.st_ino && read_size == info.st_size && read_at.tv_sec == info.st_mtim.tv_sec
        && read_at.tv_nsec == info.st_mtim.tv_nsec) return 1;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char buffer[512];
    line_count = 0;
    while (line_count < MAX_LINES && fgets(buffer, sizeof buffer, file)) {
        char *text = trim(buffer), *equals = strchr(text, '=');
        if (*text == '#' || !equals) continue;
        *equals = 0;
        snprintf(lines[line_count].key, sizeof lines[0].key, "%s", trim(text));
        snprintf(lines[line_count++].value, sizeof lines[0].value, "%s", trim(equals + 1));
    }
    fclose(file);
    read_at = info.st_mtim;
    read_size = info.st_size;
    read_file = info.st_ino;
    return 1;
}

static const char *find(const char *key) {
    for (int i = 0; i < line_count; i++)
        if (!strcmp(lines[i].key, key)) return lines[i].value;
    return NULL;
}

/* The value of one card's field: its own line, else the line for every card. */
static const char *of(nvmlDevice_t device, const char *field) {
    char key[96];
    snprintf(key, sizeof key, "gpu%d.%s", device->index, field);
    const char *own = find(key);
    if (own) return own;
    snprintf(key, sizeof key, "gpu.%s", field);
    return find(key);
}

/* What the scenario says of a call: "error.nvmlInitWithFlags", with the card's own line first. */
static int told(nvmlDevice_t device, const char *what, const char *function) {
    char key[80];
    snprintf(key, sizeof key, "%s.%s", what, function);
    const char *value = device ? of(device, key) : NULL;
    if (!value) value = find(key);
    return value ? atoi(value) : 0;
}

/* Never return, asleep as in a driver: a parent waits for its vfork child uninterruptibly ("D"), and the child, which
 * dies with it, never ends. */
static void hang(void) {
    pid_t parent = getpid();
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) pause();
        _exit(0);
    }
}

/* Hang, wait, crash or fail as the scenario says; 0 when the call may go on. */
static int gate(nvmlDevice_t device, const char *function) {
    while (told(device, "hang", function)) hang();
    usleep(1000u * (unsigned)told(device, "slow", function));
    if (told(device, "crash", function)) raise(SIGSEGV);
    return told(device, "error", function);
}

#define GATE(device) do { int code = gate(device, __func__); if (code) return code; } while (0)

static int text_of(const char *value, char *out, unsigned size) {
    if (!value) return NOT_SUPPORTED;
    if (strlen(value) + 1 > size) return INSUFFICIENT;
    strcpy(out, value);
    return OK;
}

static int number_of(const char *value, unsigned *out) {
    if (!value) return NOT_SUPPORTED;
    *out = (unsigned)strtoul(value, NULL, 0);
    return OK;
}

static int gpu_count(void) {
    const char *count = find("gpus");
    return count ? atoi(count) : 0;
}

#define NUMBER(function, field) \
    int function(nvmlDevice_t device, unsigned *out) { GATE(device); return number_of(of(device, field), out); }
#define NUMBER_BY_KIND(function, field) \
    int function(nvmlDevice_t device, unsigned kind, unsigned *out) { \
        char name[64]; \
        GATE(device); \
        snprintf(name, sizeof name, field ".%u", kind); \
        const char *exact = of(device, name); \
        return number_of(exact ? exact : of(device, field), out); }
#define TEXT(function, field) \
    int function(nvmlDevice_t device, char *out, unsigned size) { GATE(device); return text_of(of(device, field), out, size); }
#define REFUSED(function) int function(void) { int code = gate(NULL, __func__); return code ? code : NOT_SUPPORTED; }

/* ------------------------------------------------------------------------------------------------ the system */
int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (!load()) return UNKNOWN;
    GATE(NULL);
    for (int i = 0; i < MAX_GPUS; i++) devices[i].index = i;
    return OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case OK: return "Success";
    case NOT_SUPPORTED: return "Not Supported";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) { load(); GATE(NULL); return text_of(find("driver_version"), out, size); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { load(); GATE(NULL); return text_of(find("nvml_version"), out, size); }

/* "12.4" -> 12040 */
int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    load();
    GATE(NULL);
    int major, minor = 0;
    const char *value = find("cuda_version");
    if (!value || sscanf(value, "%d.%d", &major, &minor) < 1) return NOT_SUPPORTED;
    *out = major * 1000 + minor * 10;
    return OK;
}
int nvmlSystemGetCudaDriverVersion(int *out) { GATE(NULL); return nvmlSystemGetCudaDriverVersion_v2(out); }

int nvmlDeviceGetCount_v2(unsigned *count) { load(); GATE(NULL); *count = gpu_count(); return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    if ((int)index >= gpu_count() || index >= MAX_GPUS) return INVALID;
    GATE(&devices[index]);
    *device = &devices[index];
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    for (int i = 0; i < gpu_count() && i < MAX_GPUS; i++) {
        const char *own = of(&devices[i], "uuid");
        if (own && !strcmp(own, uuid)) return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    return NOT_FOUND;
}

/* ------------------------------------------------------------------------------------------------ one card */
TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetSerial, "serial")
NUMBER(nvmlDeviceGetPowerUsage, "power_mw")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit_mw")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_limit_mw")
NUMBER(nvmlDeviceGetPerformanceState, "performance_state")
NUMBER(nvmlDeviceGetPowerState, "performance_state")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pages_pending")
NUMBER(nvmlDeviceGetFanSpeed, "fan_pct")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
NUMBER_BY_KIND(nvmlDeviceGetTemperature, "temperature_c")
NUMBER_BY_KIND(nvmlDeviceGetTemperatureThreshold, "temperature_threshold_c")
NUMBER_BY_KIND(nvmlDeviceGetClockInfo, "clock_mhz")
NUMBER_BY_KIND(nvmlDeviceGetMaxClockInfo, "clock_max_mhz")
NUMBER_BY_KIND(nvmlDeviceGetPcieThroughput, "pcie_throughput_kb")
NUMBER_BY_KIND(nvmlDeviceGetNvLinkState, "nvlink")

int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *out) { GATE(device); *out = device->index; return OK; }
int nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *out) {
    GATE(device);
    if (number_of(of(device, "minor"), out)) *out = device->index;
    return OK;
}

typedef struct { unsigned version, sensor; int temperature; } Temperature;
int nvmlDeviceGetTemperatureV(nvmlDevice_t device, Temperature *out) {
    GATE(device);
    return number_of(of(device, "temperature_c"), (unsigned *)&out->temperature);
}

static uint64_t bytes_of(nvmlDevice_t device, const char *field) {
    const char *mib = of(device, field);
    return mib ? strtoull(mib, NULL, 0) << 20 : 0;
}

typedef struct { uint64_t total, free, used; } Memory;
typedef struct { unsigned version; uint64_t total, reserved, free, used; } Memory2;

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, Memory2 *out) {
    GATE(device);
    if (!of(device, "memory_total_mib")) return NOT_SUPPORTED;
    out->total = bytes_of(device, "memory_total_mib");
    out->used = bytes_of(device, "memory_used_mib");
    out->reserved = bytes_of(device, "memory_reserved_mib");
    out->free = out->total - out->used - out->reserved;
    return OK;
}

/* The first form counts what the driver reserves as used. */
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, Memory *out) {
    GATE(device);
    Memory2 both;
    int code = gate(device, "nvmlDeviceGetMemoryInfo_v2") == 15 ? 15 : OK;
    if (code || !of(device, "memory_total_mib")) return code ? code : NOT_SUPPORTED;
    both.total = bytes_of(device, "memory_total_mib");
    out->total = both.total;
    out->used = bytes_of(device, "memory_used_mib") + bytes_of(device, "memory_reserved_mib");
    out->free = out->total - out->used;
    return OK;
}

typedef struct { unsigned gpu, memory; } Utilization;
int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, Utilization *out) {
    GATE(device);
    if (number_of(of(device, "utilization_memory_pct"), &out->memory)) out->memory = 0;
    return number_of(of(device, "utilization_pct"), &out->gpu);
}

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;

/* "00000000:01:00.0" */
int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, PciInfo *out) {
    GATE(device);
    const char *address = of(device, "pci");
    memset(out, 0, sizeof *out);
    if (!address || sscanf(address, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3) return NOT_SUPPORTED;
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", out->domain, out->bus, out->device);
    snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
             out->bus & 0xff, out->device & 0xff);
    number_of(of(device, "pci_device_id"), &out->device_id);
    return OK;
}
int nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, PciInfo *out) { return nvmlDeviceGetPciInfo_v3(device, out); }

int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    GATE(device);
    const char *value = of(device, "compute_capability");
    return value && sscanf(value, "%d.%d", major, minor) == 2 ? OK : NOT_SUPPORTED;
}

static int wide_of(const char *value, unsigned long long *out) {
    if (!value) return NOT_SUPPORTED;
    *out = strtoull(value, NULL, 0);
    return OK;
}
int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *out) {
    GATE(device);
    return wide_of(of(device, "clock_event_reasons"), out);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *out) {
    GATE(device);
    return wide_of(of(device, "clock_event_reasons"), out);
}
int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *out) {
    GATE(device);
    return wide_of(of(device, "energy_mj"), out);
}

int nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    GATE(device);
    int code = number_of(of(device, "ecc"), current);
    *pending = *current;
    return code;
}
int nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned kind, unsigned counter, unsigned long long *out) {
    GATE(device);
    char field[64];
    snprintf(field, sizeof field, "ecc_%s_%s", kind ? "uncorrected" : "corrected", counter ? "aggregate" : "volatile");
    return wide_of(of(device, field), out);
}

int nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                              unsigned *failed) {
    GATE(device);
    const char *value = of(device, "remapped_rows"); /* "corrected uncorrected pending failed" */
    return value && sscanf(value, "%u %u %u %u", corrected, uncorrected, pending, failed) == 4 ? OK : NOT_SUPPORTED;
}

int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    GATE(device);
    int code = number_of(of(device, "mig"), current);
    if (!code) *pending = *current;
    return code;
}
int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *out) {
    GATE(device);
    if (number_of(of(device, "mig_devices"), out)) *out = 0;
    return OK;
}
int nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *out) { GATE(device); *out = 0; return OK; }

typedef struct {
    uint32_t id, scope;
    int64_t timestamp, latency;
    unsigned type;
    int code;
    union { double real; unsigned long long number; unsigned small; } value;
} FieldValue;

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* "gpu.field.230 = 0"; of a counter "gpu.field_per_s.138 = 2048": it grows by so much a second. */
int nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, FieldValue *values) {
    GATE(device);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "field.%u", values[i].id);
        const char *value = of(device, name);
        values[i].timestamp = now_us();
        values[i].type = 1; /* unsigned int */
        values[i].code = value ? OK : NOT_SUPPORTED;
        values[i].value.number = value ? strtoull(value, NULL, 0) : 0;
        snprintf(name, sizeof name, "field_per_s.%u", values[i].id);
        if (!(value = of(device, name))) continue;
        values[i].type = 3; /* unsigned long long */
        values[i].code = OK;
        values[i].value.number = (unsigned long long)(strtod(value, NULL) * (values[i].timestamp % 100000000000LL) / 1e6);
    }
    return OK;
}

/* Version word, then cluster UUID, status, clique and state in the second form of the record and later ones. */
typedef struct { unsigned version; unsigned char cluster[16]; int status; unsigned clique, state, health; } Fabric;
int nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, Fabric *out) {
    GATE(device);
    out->status = OK;
    return number_of(of(device, "fabric_state"), &out->state);
}

/* ------------------------------------------------------------------------------------------------ two cards */
int nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, unsigned *out) {
    GATE(one);
    (void)other;
    return number_of(find("topology"), out);
}
int nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, unsigned kind, unsigned *out) {
    GATE(one);
    (void)other;
    char name[32];
    snprintf(name, sizeof name, "p2p.%u", kind);
    return number_of(find(name), out);
}

/* ------------------------------------------------------------------------------------------------ processes */
typedef struct { unsigned pid; uint64_t used; unsigned gpu_instance, compute_instance; } Process;

/* Lines "gpu0.compute_process = PID MIB [GPU_INSTANCE]", one a process; MIB "-" is "not available".
 * "process_record_bytes = 32" writes the longer record of drivers 535.54 and 535.86. */
static int processes(nvmlDevice_t device, const char *field, unsigned *count, char *out) {
    char key[64], mib[32];
    unsigned found = 0, room = *count;
    const char *record = find("process_record_bytes");
    size_t size = record ? strtoul(record, NULL, 0) : sizeof(Process);
    snprintf(key, sizeof key, "gpu%d.%s", device->index, field);
    for (int i = 0; i < line_count; i++) {
        unsigned pid, instance = 0xffffffffu;
        if (strcmp(lines[i].key, key) || sscanf(lines[i].value, "%u %31s %u", &pid, mib, &instance) < 2) continue;
        if (out && found < room) {
            Process one = {pid, *mib == '-' ? ~0ull : strtoull(mib, NULL, 0) << 20, instance, 0xffffffffu};
            memset(out + found * size, 0, size);
            memcpy(out + found * size, &one, sizeof one);
        }
        found++;
    }
    *count = found;
    return found > room || (found && !out) ? INSUFFICIENT : OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, char *out) {
    GATE(device);
    return processes(device, "compute_process", count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, char *out) {
    GATE(device);
    return processes(device, "graphics_process", count, out);
}

/* ------------------------------------------------------------------------------------------------ GPM (Hopper and newer) */
/* "gpu.gpm = 1": the card has it; "gpu.gpm.5 = 37.5": what metric 5 gives between any two samples. */
typedef struct { unsigned version, is_supported; } GpmSupport;
int nvmlGpmQueryDeviceSupport(nvmlDevice_t device, GpmSupport *out) {
    GATE(device);
    if (number_of(of(device, "gpm"), &out->is_supported)) out->is_supported = 0;
    return OK;
}
int nvmlGpmSampleAlloc(nvmlDevice_t **out) {
    GATE(NULL);
    *out = calloc(1, sizeof **out);
    return *out ? OK : UNKNOWN;
}
int nvmlGpmSampleFree(nvmlDevice_t *sample) { free(sample); return OK; }
int nvmlGpmSampleGet(nvmlDevice_t device, nvmlDevice_t *sample) { GATE(device); *sample = device; return OK; }

typedef struct { unsigned id; int code; double value; const char *words[3]; } GpmMetric;
typedef struct { unsigned version, count; nvmlDevice_t *first, *second; GpmMetric metrics[]; } GpmMetrics;
int nvmlGpmMetricsGet(GpmMetrics *asked) {
    if (!asked->first || !asked->second || !*asked->first || *asked->first != *asked->second) return INVALID;
    nvmlDevice_t device = *asked->first;
    GATE(device);
    for (unsigned i = 0; i < asked->count; i++) {
        char field[32];
        snprintf(field, sizeof field, "gpm.%u", asked->metrics[i].id);
        const char *value = of(device, field);
        asked->metrics[i].code = value ? OK : NOT_SUPPORTED;
        asked->metrics[i].value = value ? strtod(value, NULL) : 0;
    }
    return OK;
}

/* ------------------------------------------------------------------------------------------------ NVLink errors, events */
/* "gpu0.nvlink_errors.2.1 = 5": link 2 recovered five times (0 replay, 1 recovery, 2 flit CRC, 3 data CRC). */
int nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link, unsigned counter, unsigned long long *out) {
    GATE(device);
    char field[48];
    snprintf(field, sizeof field, "nvlink_errors.%u.%u", link, counter);
    const char *value = of(device, field);
    if (!value) value = of(device, "nvlink_errors");
    return wide_of(value, out);
}

/* "gpu0.xid = 79": given once to who waits for it; another text there ("79 again") is a new event. */
static char given[MAX_GPUS][sizeof lines[0].value];
static char is_registered[MAX_GPUS];
typedef struct { nvmlDevice_t device; unsigned long long type, data; unsigned gpu_instance, compute_instance; } Event;
int nvmlEventSetCreate(void **out) { GATE(NULL); *out = given; return OK; }
int nvmlEventSetFree(void *set) { (void)set; return OK; }
int nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *out) { GATE(device); *out = 8; return OK; }
int nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, void *set) {
    GATE(device);
    (void)set;
    is_registered[device->index] = (types & 8) != 0;
    return OK;
}
int nvmlEventSetWait_v2(void *set, Event *out, unsigned timeout_ms) {
    GATE(NULL);
    (void)set;
    for (int i = 0; i < gpu_count() && i < MAX_GPUS; i++) {
        const char *xid = is_registered[i] ? of(&devices[i], "xid") : NULL;
        if (!xid || !strcmp(xid, given[i])) continue;
        snprintf(given[i], sizeof given[i], "%s", xid);
        *out = (Event){&devices[i], 8, strtoull(xid, NULL, 0), 0xffffffffu, 0xffffffffu};
        return OK;
    }
    usleep(1000u * timeout_ms);
    return TIMEOUT;
}

/* What monitors ask for besides: refused, as a consumer card refuses it. */
REFUSED(nvmlDeviceGetUtilizationRatesV)
REFUSED(nvmlDeviceGetEncoderUtilization)
REFUSED(nvmlDeviceGetDecoderUtilization)
REFUSED(nvmlDeviceGetDisplayActive)
REFUSED(nvmlDeviceGetDisplayMode)
REFUSED(nvmlDeviceGetDriverModel)
REFUSED(nvmlDeviceGetDriverModel_v2)
REFUSED(nvmlDeviceGetConfComputeMemSizeInfo)
REFUSED(nvmlDeviceGetProcessUtilization)
REFUSED(nvmlDeviceGetRunningProcessDetailList)
REFUSED(nvmlDeviceGetBAR1MemoryInfo)
REFUSED(nvmlDeviceGetMigDeviceHandleByIndex)
REFUSED(nvmlDeviceGetGpuFabricInfo)
