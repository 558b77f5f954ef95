"""Patterns of data files: encodings, truncated files, names."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # UnicodeDecodeError: 'utf-8' codec can't decode byte 0xb5 in position 0: invalid start byte
    Pattern(
        id="not-utf8",
        regex=r"'utf-?8' codec can't decode bytes? (?P<byte>\S+) in position (?P<position>[\d-]+)",
        meaning=t(
            "A file is not UTF-8 (byte {byte} at {position}); Chinese files from Windows are often GBK.",
            byte="?",
            position="?",
        ),
        advice=t(
            "Try encoding='gb18030'; convert once with `iconv -f gb18030 -t utf-8 IN > OUT`. A single bad line means a damaged file."
        ),
        confirms=("file-encoding-not-utf8", "file-partly-corrupt"),
    ),
    # UnicodeDecodeError: 'gbk' codec can't decode byte 0x80 in position 12: illegal multibyte sequence
    Pattern(
        id="not-gbk",
        regex=r"'(?:gbk|gb2312|cp936)' codec can't (?:decode|encode) (?:byte|character)s? (?P<byte>\S+)",
        meaning=t("A UTF-8 file is read as GBK, because the locale says so."),
        advice=t("open(..., encoding='utf-8'), or start Python with PYTHONUTF8=1."),
        confirms=("locale-default-encoding",),
    ),
    # UnicodeEncodeError: 'ascii' codec can't encode characters in position 0-3: ordinal not in range(128)
    Pattern(
        id="ascii-locale",
        regex=r"'(?:ascii|latin-1|charmap)' codec can't (?:encode|decode)",
        meaning=t("The locale is not UTF-8, so Chinese text cannot be read or printed."),
        advice=t("`export LANG=C.UTF-8 PYTHONUTF8=1` before Python starts."),
        confirms=("locale-default-encoding",),
    ),
    # json.decoder.JSONDecodeError: Unexpected UTF-8 BOM (decode using utf-8-sig)
    Pattern(
        id="bom",
        regex=r"Unexpected UTF-8 BOM|\\ufeff",
        meaning=t("The file begins with a byte order mark."),
        advice=t("Read with encoding='utf-8-sig', or remove it once: `sed -i '1s/^\\xEF\\xBB\\xBF//' FILE`."),
        confirms=("utf8-bom",),
        hides=("json-cut",),
    ),
    # json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 5
    Pattern(
        id="json-cut",
        regex=r"JSONDecodeError: (?P<what>Unterminated string|Expecting value|Extra data|Expecting property name|Expecting ',' delimiter)[^\n]*",
        meaning=t("A JSON file is cut short, empty, or JSON lines read as one JSON ({what}).", what="?"),
        advice=t("Look at the line named; for .jsonl read line by line or load_dataset('json')."),
        confirms=("file-partly-corrupt",),
    ),
    # pyarrow.lib.ArrowInvalid: Parquet magic bytes not found in footer.
    Pattern(
        id="parquet-cut",
        regex=r"Parquet magic bytes not found|Not a Parquet file|Parquet file size is \d+ bytes|not an Arrow file|Invalid gzip|EOFError: Compressed file ended before|BadZipFile|CRC-32 check failed|Not a gzipped file",
        meaning=t("A data file is damaged, cut short, or only a Git LFS pointer."),
        advice=t("Compare its size with the source's, delete it and download again."),
        confirms=("file-partly-corrupt", "corrupt-checkpoint"),
    ),
    # End-of-central-directory signature not found.  Either this file is not a zipfile   |   gzip: stdin: unexpected end of file   |   tar: 归档文件中异常的 EOF   |   tar: Unexpected EOF in archive
    Pattern(
        id="archive-cut",
        regex=r"End-of-central-directory signature not found|gzip: \S+: (?:unexpected end of file|not in gzip format)|tar: (?:Unexpected EOF in archive|归档文件中异常的 ?EOF)|xz: \S+: Unexpected end of input",
        meaning=t(
            "The archive is not whole: the download or the upload was cut off, or a web page was saved in its place."
        ),
        advice=t(
            "`ls -l` and compare with the size at the source, `head -c 100 FILE` shows whether it is text. Load it again with `wget -c URL`, or upload it again and wait for the end; then `unzip -t` or `tar tf` before unpacking."
        ),
        confirms=("disk-nearly-full",),
    ),
    # pandas.errors.ParserError: Error tokenizing data. C error: Expected 2 fields in line 17, saw 3
    Pattern(
        id="csv-fields",
        regex=r"Expected (?P<expected>\d+) fields in line (?P<line>\d+), saw (?P<saw>\d+)",
        meaning=t(
            "Line {line} of a CSV has {saw} fields where {expected} were expected: an unquoted comma, or a tab-separated file.",
            line="?",
            saw="?",
            expected="?",
        ),
        advice=t("Quote the text column, or give the separator (sep='\\t')."),
    ),
    # KeyError: 'getpwuid(): uid not found: 1000'
    Pattern(
        id="no-passwd-entry",
        regex=r"getpwuid\(\): uid not found",
        meaning=t("The container runs as a user id without a name; torch.compile and getpass ask for one."),
        advice=t(
            "`export USER=me LOGNAME=me TORCHINDUCTOR_CACHE_DIR=/tmp/inductor`, or run as a user of /etc/passwd."
        ),
        confirms=("uid-without-passwd-entry",),
    ),
    # PermissionError: [Errno 13] Permission denied: '/dev/shm/pym-199-vt8ykacs'
    Pattern(
        id="shm-permission",
        regex=r"Permission denied: '(?P<path>/dev/shm[^']*)'",
        meaning=t(
            "This user may not write into /dev/shm, over which processes hand each other locks and batches: in this container it was mounted without rights for all."
        ),
        advice=t(
            "As root `chmod 1777 /dev/shm`; or start the container with --shm-size=16g (or --ipc=host), which makes it anew; num_workers=0 does without it."
        ),
        confirms=("shm-too-small",),
        hides=("permission",),
    ),
    # PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface'
    Pattern(
        id="permission",
        regex=r"PermissionError: \[Errno 13\] Permission denied: '(?P<path>[^']*)'",
        meaning=t("{path} belongs to another user.", path="?"),
        advice=t(
            "Set HF_HOME (or the cache it belongs to) to a folder of yours; undo an earlier sudo with chown."
        ),
    ),
)
