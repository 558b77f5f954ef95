"""Checks on what a look into labels, vocabulary, text files and checkpoints found. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from doctor.checks import check, evidence
from doctor.model import Data, Evidence, Finding, InspectedFile, Reading, Workload, t

IGNORE_INDEX = -100
"""Labels with this value are left out of the loss (torch.nn.CrossEntropyLoss)."""


@check("label-out-of-range")
def labels_fit_the_classifier(data: Data) -> Iterator[Finding]:
    """Does every label lie below num_labels?"""
    if data.num_labels is None or not data.label_values or data.num_labels == 1:
        return  # one output is a regression, or one probability: its labels are values, not classes
    outside = sorted(
        {value for value in data.label_values if value != IGNORE_INDEX and not 0 <= value < data.num_labels}
    )
    if not outside:
        return
    inside = sorted({value for value in data.label_values if value != IGNORE_INDEX})
    from_one = inside[0] == 1 and inside[-1] == data.num_labels
    yield Finding(
        id="label-out-of-range",
        level="fail",
        subject="labels",
        title=t(
            "label {values} with num_labels {count}: on the GPU that is a device-side assert (t >= 0 && t < n_classes), at a line far from the cause",
            values=", ".join(map(str, outside[:5])),
            count=data.num_labels,
        ),
        evidence=evidence(
            data__num_labels=data.num_labels, data__label_values=", ".join(map(str, inside[:20]))
        ),
        advice=t("The labels count from 1: subtract 1 (labels 0 to {last}).", last=data.num_labels - 1)
        if from_one
        else t(
            "num_labels={needed}, or map the labels to 0 .. {last}. One batch on the CPU shows the true line.",
            needed=max(inside) + 1,
            last=data.num_labels - 1,
        )
        if inside[0] >= 0
        else t(
            "Map the labels to 0 .. {last} ({ignored} alone is left out of the loss).",
            last=data.num_labels - 1,
            ignored=IGNORE_INDEX,
        ),
    )


@check("token-id-out-of-vocab")
def token_ids_have_embeddings(data: Data) -> Iterator[Finding]:
    """Has every token id a row in the embedding? More rows than tokens are ordinary padding."""
    rows = data.embedding_rows
    if rows is None:
        return
    largest = data.max_token_id
    if largest is not None and largest >= rows:
        title = t(
            "token id {largest} with an embedding of {rows} {rows:row|rows}: index out of range, on the GPU a device-side assert",
            largest=largest,
            rows=rows,
        )
    elif data.tokenizer_size is not None and data.tokenizer_size > rows:
        title = t(
            "the tokenizer has {size} {size:token|tokens}, the embedding {rows} {rows:row|rows}: the tokens that were added have none",
            size=data.tokenizer_size,
            rows=rows,
        )
    else:
        return
    unused = largest is not None and largest < rows
    yield Finding(
        id="token-id-out-of-vocab",
        level="warn" if unused else "fail",
        subject=data.tokenizer or "tokenizer",
        title=title,
        evidence=evidence(
            data__max_token_id=largest, data__tokenizer_size=data.tokenizer_size, data__embedding_rows=rows
        ),
        advice=t(
            "model.resize_token_embeddings(len(tokenizer)) after tokens were added; else take the tokenizer that belongs to the model."
        ),
    )


def is_punctuation(character: str) -> bool:
    return all(unicodedata.category(one)[0] in "PS" for one in character)


@check("vocab-missing-chinese-punctuation")
def punctuation_has_tokens(data: Data) -> Iterator[Finding]:
    """Are all the characters that become [UNK] punctuation, as with the Chinese BERT vocabularies?"""
    unknown = data.unknown_characters
    if not unknown or not all(is_punctuation(one) for one in unknown):
        return
    share = data.unknown_token_share
    yield Finding(
        id="vocab-missing-chinese-punctuation",
        level="warn",
        subject=data.tokenizer or "tokenizer",
        title=t(
            "all unknown tokens are punctuation: {characters} become [UNK] ({share} % of the sample's tokens)",
            characters=" ".join(unknown[:12]),
            share=round(100 * share, 1),
        )
        if share
        else t(
            "all unknown tokens are punctuation: {characters} become [UNK]", characters=" ".join(unknown[:12])
        ),
        evidence=evidence(
            data__unknown_characters=" ".join(unknown),
            data__unknown_token_share=share,
            data__tokenizer=data.tokenizer,
        ),
        advice=t(
            'Map them to half-width forms before tokenizing (\u201c\u201d to ", \u2026 to ..., \u2014 to -), or tokenizer.add_tokens([...]) and model.resize_token_embeddings(len(tokenizer)).'
        ),
    )


def shown(character: str) -> str:
    """Return what cannot be seen (zero-width, control, private use) by its number: ``U+200B``."""
    unseen = any(unicodedata.category(one)[0] in "CMZ" for one in character)
    return " ".join(f"U+{ord(one):04X}" for one in character) if unseen else character


@check("chars-without-tokens")
def every_character_leaves_a_token(data: Data) -> Iterator[Finding]:
    """Do characters of the text vanish without a token, so that offsets and labels shift?"""
    vanishing = [
        shown(one) for one in data.vanishing_characters if one.strip()
    ]  # white space vanishes by design
    if vanishing:
        yield Finding(
            id="chars-without-tokens",
            level="warn",
            subject=data.tokenizer or "tokenizer",
            title=t(
                "{characters} give no token at all: labels for each character shift from there on",
                characters=" ".join(vanishing[:12]),
            ),
            evidence=evidence(data__vanishing_characters=" ".join(vanishing)),
            advice=t(
                "Align labels by word_ids() or offsets instead of by position, or replace these characters before tokenizing."
            ),
        )


@check("vocab-file-splitlines-corruption")
def vocabularies_are_read_by_line(data: Data, workload: Reading[Workload]) -> Iterator[Finding]:
    """Does the run split a vocabulary at characters that are tokens in it?"""
    run = workload.value
    splits = bool(run and "vocab-splitlines" in run.features)
    if run and run.source and not splits:
        return  # the script was read, and reads its vocabulary otherwise
    for index, file in enumerate(data.files):
        if file.kind == "vocab" and ("U+2028" in file.note or "U+2029" in file.note or "U+0085" in file.note):
            yield Finding(
                id="vocab-file-splitlines-corruption",
                level="fail" if splits else "note",
                subject=file.path,
                title=t(
                    "{file} holds a line separator as a token, and str.splitlines() splits there: every id after it is shifted by one",
                    file=file.path,
                ),
                evidence=(Evidence(fact=f"data.files[{index}].note", value=file.note),),
                advice=t(
                    'Read it line by line: {line.rstrip("\\n"): i for i, line in enumerate(open(path, encoding="utf-8", newline="\\n"))}'
                ),
            )


_NOT_UTF8 = {"gb18030": "GB18030 (GBK)", "gbk": "GBK", "gb2312": "GB2312", "big5": "Big5", "utf-16": "UTF-16", "shift_jis": "Shift JIS", "latin-1": "Latin-1"}  # fmt: skip


def _texts(data: Data) -> Iterator[tuple[int, InspectedFile]]:
    yield from (
        (index, file) for index, file in enumerate(data.files) if file.kind in ("text", "vocab", "script")
    )


@check("file-encoding-not-utf8")
def texts_are_utf8(data: Data) -> Iterator[Finding]:
    """Is a text file in another encoding than UTF-8 throughout?"""
    for index, file in _texts(data):
        name = _NOT_UTF8.get((file.encoding or "").lower())
        if name:
            yield Finding(
                id="file-encoding-not-utf8",
                level="fail",
                subject=file.path,
                title=t(
                    "{file} is {encoding} throughout, not UTF-8: 'utf-8' codec can't decode",
                    file=file.path,
                    encoding=name,
                ),
                evidence=(Evidence(fact=f"data.files[{index}].encoding", value=file.encoding or ""),),
                advice=t(
                    'Convert it once: iconv -f {encoding} -t UTF-8 {file} > {file}.utf8 (or open(path, encoding="{encoding}")). Skipping what cannot be decoded would lose nearly all of it.',
                    encoding=(file.encoding or "").upper().replace("GBK", "GB18030"),
                    file=file.path,
                ),
            )


@check("utf8-bom")
def texts_begin_without_a_mark(data: Data) -> Iterator[Finding]:
    """Does a text file begin with a byte order mark?"""
    for index, file in _texts(data):
        if file.encoding != "utf-8-bom":
            continue
        refused = file.path.endswith((".json", ".jsonl"))
        yield Finding(
            id="utf8-bom",
            level="fail" if refused else "warn",
            subject=file.path,
            title=t(
                "{file} begins with a byte order mark (EF BB BF), which JSON readers refuse (Unexpected UTF-8 BOM)",
                file=file.path,
            )
            if refused
            else t(
                "{file} begins with a byte order mark (EF BB BF): it sticks to the first column name or token",
                file=file.path,
            ),
            evidence=(Evidence(fact=f"data.files[{index}].encoding", value=file.encoding),),
            advice=t(
                "Take it off: sed -i '1s/^\\xEF\\xBB\\xBF//' {file} (or open(path, encoding=\"utf-8-sig\")).",
                file=file.path,
            ),
        )


@check("file-partly-corrupt")
def texts_decode_to_the_end(data: Data) -> Iterator[Finding]:
    """Are a few lines of an otherwise sound text file broken, as a cut download leaves them?"""
    for index, file in _texts(data):
        broken = file.bad_lines or 0
        if file.encoding != "mixed" and not (broken and file.encoding == "utf-8"):
            continue
        yield Finding(
            id="file-partly-corrupt",
            level="fail",
            subject=file.path,
            title=t(
                "{file} is UTF-8 but for {broken} of {lines} {lines:line|lines}: damaged, not another encoding",
                file=file.path,
                broken=broken or "some",
                lines=file.lines,
            )
            if file.lines
            else t(
                "{file} is UTF-8 but for {broken} {broken:line|lines}: damaged, not another encoding",
                file=file.path,
                broken=broken or "some",
            ),
            evidence=(Evidence(fact=f"data.files[{index}].bad_lines", value=str(broken)),),
            advice=t("Download it again and compare size and checksum with the published ones."),
        )
