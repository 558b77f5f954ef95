"""Patterns of downloads from a model hub: Xet past the mirror, broken half downloads, names that ModelScope does not know."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # File "/root/miniconda3/lib/python3.12/site-packages/huggingface_hub/utils/_xet.py", line 190, in _fetch_xet_connection_info_with_url   |   RuntimeError: Data processing error: CAS service error : ReqwestMiddleware Error
    Pattern(
        id="xet-unreached",
        regex=r"[/\\]_xet\.py\"|CAS service error|^(?:requests|urllib3|httpx)[\w.]*: [^\n]*xethub\.hf\.co",
        cleared_by=r"100%\|[█#]",
        meaning=t("The file is fetched through Xet, whose servers are asked past HF_ENDPOINT and do not answer here."),
        advice=t("`export HF_HUB_DISABLE_XET=1` before Python starts, then again: what is there already is kept."),
        confirms=("mirror-with-xet",),
        hides=("hub-unreachable", "index-timeout", "connection-cut"),
    ),
    # requests.exceptions.HTTPError: 416 Client Error: Requested Range Not Satisfiable for url: https://hf-mirror.com/Qwen/Qwen2.5-7B/resolve/main/model-00001-of-00004.safetensors
    Pattern(
        id="half-download-too-long",
        regex=r"416 Client Error: (?:Requested )?Range Not Satisfiable",
        meaning=t("The half download on the disk (*.incomplete) is already as long as the file or longer, so that there is no rest to ask for."),
        advice=t("`find ~/.cache/huggingface -name '*.incomplete' -delete` (with HF_HOME or --local-dir: there), then again."),
        confirms=("disk-nearly-full",),
    ),
    # 404 Client Error: Not Found for url: https://www.modelscope.cn/api/v1/models/meta-llama/Meta-Llama-3-8B/revisions   |   modelscope - ERROR - Authentication token does not exist, failed to access model 01-ai/Yi-1.5-34B-chat which may not exist or may be private. Please login first.
    Pattern(
        id="modelscope-name",
        regex=r"404 Client Error: [^\n]{0,40}modelscope\.cn/api/v1/(?:models|datasets)/(?P<model>[\w.-]+/[\w.-]+)|failed to access model (?P<model2>\S+) which may not exist|modelscope\.hub\.errors\.NotExistError",
        meaning=t("ModelScope has no {model}{model2} under this name, and says the same of private ones. Many models stand there under another owner than on Hugging Face.", model="", model2=""),
        advice=t("Look the name up on modelscope.cn and copy the id of that page, capitals included (Meta's Llama is at LLM-Research). A private one: `modelscope login --token TOKEN`."),
    ),
    # requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))   |   urllib.error.URLError: <urlopen error [WinError 10054] 远程主机强迫关闭了一个现有的连接。>
    Pattern(
        id="connection-cut",
        regex=r"^(?:requests|urllib3)\.exceptions\.\w+: [^\n]*'Connection aborted\.'|urlopen error \[(?:WinError 100(?:54|60|61)|Errno 1(?:01|04|10|11))\]|ConnectionResetError: \[WinError 10054\]",
        cleared_by=r"100%\|[█#]|Successfully installed",
        meaning=t("The connection to a server was refused or cut on the way: a firewall, a proxy that is off, or a line that does not carry so far."),
        advice=t("Models: HF_ENDPOINT=https://hf-mirror.com before Python starts, or ModelScope; packages: a mirror near you. AutoDL: `source /etc/network_turbo`. Else `unset http_proxy https_proxy`."),
        confirms=("platform-proxy-on", "platform-proxy-there", "hub-endpoint-invalid"),
    ),
    # HTTPSConnectionPool(host='openaipublic.blob.core.windows.net', port=443): Max retries exceeded with url: /encodings/cl100k_base.tiktoken
    Pattern(
        id="tiktoken-table",
        regex=r"openaipublic\.blob\.core\.windows\.net|/encodings/\w+\.tiktoken",
        meaning=t("tiktoken fetches its table of tokens from OpenAI's storage at first use, and that is not reached from here."),
        advice=t("On a computer that reaches it, run `tiktoken.get_encoding('cl100k_base')` with TIKTOKEN_CACHE_DIR set, copy that folder over and set the variable here as well; AutoDL: `source /etc/network_turbo` once."),
        confirms=("platform-proxy-there",),
        hides=("hub-unreachable", "index-timeout", "connection-cut", "host-unreached"),
    ),
    # Please use the NLTK Downloader to obtain the resource:   |   Resource punkt_tab not found.
    Pattern(
        id="nltk-data",
        regex=r"Please use the NLTK Downloader to obtain the resource|^ *Resource '?(?P<name>\w+)'? not found\.$",
        meaning=t("NLTK has no {name} data here; they are downloaded apart from the package, from GitHub.", name=""),
        advice=t("`python -m nltk.downloader punkt punkt_tab wordnet stopwords` where GitHub is reached (AutoDL: `source /etc/network_turbo` first); else copy an nltk_data folder to ~/nltk_data or set NLTK_DATA to it."),
    ),
    # requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.swanlab.cn', port=443): Max retries exceeded with url: /api/login (Caused by NewConnectionError(...))
    Pattern(
        id="host-unreached",
        regex=r"^(?:requests|urllib3)\.exceptions\.\w+: HTTPS?ConnectionPool\(host='(?P<host>(?![\w.-]*huggingface|[\w.-]*hf\.co|hf-mirror)[\w.-]+)', port=\d+\): Max retries exceeded",
        meaning=t("{host} is not reached from here.", host="?"),
        advice=t("`curl -sI https://{host} | head -1` tries it alone. A proxy that is off: `unset http_proxy https_proxy all_proxy`; a server abroad: `source /etc/network_turbo` (AutoDL) or a mirror; a tracker: its offline mode.", host="HOST"),
        confirms=("platform-proxy-on", "platform-proxy-there"),
        hides=("hub-unreachable", "index-timeout"),
    ),
)  # fmt: skip
