"""Patterns of the hub's answers: no token, no right, no such file, too slow, offline."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/bert-base-uncased: offline mode is enabled.
    Pattern(
        id="hub-offline-mode",
        regex=r"offline mode is enabled\. To disable it|OfflineModeIsEnabled|HF_HUB_OFFLINE(?: environment variable)? is set|outgoing traffic has been disabled\. To enable hf\.co look-ups",
        meaning=t("Offline mode is on (HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE or local_files_only), and the files are not in the cache that this process looks into."),
        advice=t("`env | grep -i offline; echo $HF_HOME`: download once with it off (`HF_HUB_OFFLINE=0 hf download NAME`), with the same HF_HOME as the run."),
        confirms=("hub-offline",),
        hides=("hub-unreachable",),
    ),
    # huggingface_hub.errors.HfHubHTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/whoami-v2   |   Invalid user token.
    Pattern(
        id="hub-token",
        regex=r"401 Client Error[^\n]*\n?(?:[^\n]*\n){0,4}?[^\n]*(?:Invalid (?:username or password|user token|credentials)|whoami)|Invalid user token|Token is required \(`token=True`\), but no token found|User Access Token \"?[\w-]*\"? is expired",
        meaning=t("The hub does not accept the token, or there is none: expired, cut off when it was copied, or another user's."),
        advice=t("`hf auth whoami`; a new token from the hub's settings, then `hf auth login` or HF_TOKEN (without quotes or blanks around it). An old HF_TOKEN in the environment goes before the login."),
        confirms=("pod-variables-missing-over-ssh",),
        hides=("model-not-found",),
    ),
    # 403 Forbidden: You don't have the rights to create a model under the namespace "org".   |   Cannot access content at: ... Make sure your token has the correct permissions.
    Pattern(
        id="hub-rights",
        regex=r"You don't have the rights to create|Make sure your token has the correct permissions|fine-grained token settings to access|you must use a write token|Forbidden: Authorization error",
        meaning=t("The token may read and not do this: a token without write permission, or a fine-grained one that does not name this repository."),
        advice=t("A token with the role write (or with access to gated or that organisation's repositories), and `hf auth login` again; or push_to_hub=False."),
    ),
    # huggingface_hub.errors.EntryNotFoundError: 404 Client Error.   |   huggingface_hub.errors.RevisionNotFoundError: 404 Client Error.
    Pattern(
        id="hub-file-missing",
        regex=r"(?<!Local)EntryNotFoundError: 404|RevisionNotFoundError",
        meaning=t("The repository is there, and has no such file or revision."),
        advice=t("`hf download NAME --dry-run` (or the page's file list) shows its files; mind the branch, capital letters and the variant (model.safetensors, pytorch_model.bin)."),
    ),
    # datasets.exceptions.DatasetNotFoundError: Dataset 'imdbb' doesn't exist on the Hub or cannot be accessed.
    Pattern(
        id="dataset-not-found",
        regex=r"DatasetNotFoundError: Dataset '(?P<name>[^'\n]+)'|Dataset '(?P<name2>[^'\n]+)' (?:doesn't exist on the Hub or cannot be accessed|is a gated dataset on the Hub)|Couldn't find a dataset script at (?P<path>\S+)",
        meaning=t("There is no data set {name}{name2}{path} that you may read: a typing error, a private or gated one, or a local path that does not exist from where the script runs.", name="", name2="", path=""),
        advice=t("A gated one: accept its terms on its page, then HF_TOKEN. A local folder: `ls` it from the working directory; files are load_dataset('json', data_files=...)."),
        confirms=("pod-variables-missing-over-ssh",),
        hides=("hub-unreachable",),
    ),
    # requests.exceptions.HTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/models   |   500 Server Error: Internal Server Error for url: https://huggingface.co/
    Pattern(
        id="hub-server-error",
        regex=r"(?P<code>50\d) Server Error: [^\n]{0,60} for url: https?://(?P<host>(?:[\w-]+\.)*(?:huggingface\.co|hf\.co|hf-mirror\.com))",
        meaning=t("{host} itself is in trouble ({code}); nothing on this machine is wrong.", host="?", code="50x"),
        advice=t("Try again in some minutes; its status page says whether it is known. What is in the cache works with HF_HUB_OFFLINE=1."),
        hides=("hub-unreachable",),
    ),
    # ImportError: Fast download using 'hf_transfer' is enabled (HF_HUB_ENABLE_HF_TRANSFER=1) but 'hf_transfer' package is not available in your environment.
    Pattern(
        id="hf-transfer-missing",
        regex=r"'hf_transfer' (?:is enabled|package is not available)|using 'hf_transfer' is enabled",
        meaning=t("HF_HUB_ENABLE_HF_TRANSFER=1 is set (many images do), and the package is not in this environment."),
        advice=t("`unset HF_HUB_ENABLE_HF_TRANSFER`, or `python -m pip install hf_transfer`."),
    ),
    # RuntimeError: An error occurred while downloading using `hf_transfer`. Consider disabling HF_HUB_ENABLE_HF_TRANSFER for better error handling.
    Pattern(
        id="hf-transfer-failed",
        regex=r"error occurred while downloading using `hf_transfer`",
        meaning=t("hf_transfer broke off and does not say why: the disk is full, or the line is slow."),
        advice=t("`df -h` first; then `HF_HUB_ENABLE_HF_TRANSFER=0` and again: the ordinary download goes on where it stopped and names the error."),
        confirms=("disk-nearly-full", "hf-cache-on-small-disk"),
    ),
    # http.client.IncompleteRead: IncompleteRead(1048576 bytes read, 3145728 more expected)   |   ChunkedEncodingError: ('Connection broken: InvalidChunkLength(...)')
    Pattern(
        id="transfer-broken-off",
        regex=r"IncompleteRead\(\d+ bytes read|Connection broken: |peer closed connection without sending complete message body",
        cleared_by=r"Trying to resume|100%\|",
        meaning=t("The other side (or something between) broke off a connection in the middle."),
        advice=t("Start again: `hf download` goes on where it stopped, pip and wget do with -c. If it repeats at the same place, a proxy or a mirror cuts long transfers."),
        confirms=("platform-proxy-on", "platform-proxy-there"),
    ),
    # wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.   |   wandb: Network error (ConnectTimeout), entering retry loop.
    Pattern(
        id="wandb-network",
        regex=r"Run initialization has timed out after|wandb: (?:W&B API|Network error|ERROR Network)[^\n]*(?:retry|error|ConnectTimeout)|wandb: Network error",
        meaning=t("The server of Weights & Biases cannot be reached from here (in time)."),
        advice=t("`export WANDB_MODE=offline` and upload later with `wandb sync FOLDER`; or report_to='none'."),
        confirms=("platform-proxy-there",),
        hides=("wandb-login",),
    ),
)  # fmt: skip
