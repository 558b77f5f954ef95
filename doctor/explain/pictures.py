"""Patterns of models that read pictures: place holders that do not fit, files that are no pictures."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # ValueError: Image features and image tokens do not match: tokens: 1024, features 1280
    Pattern(
        id="image-tokens-cut",
        regex=r"(?P<kind>Image|Video)s? features and (?:image|video) tokens do not match: tokens: (?P<tokens>\d+), features:? (?P<features>\d+)",
        meaning=t("The text has {tokens} places for a picture (or film) of {features}: it was cut in the middle of one, or was prepared by a processor of another release than the model's code.", tokens="?", features="?"),
        advice=t("A larger cutoff_len or max_length, or smaller pictures (max_pixels, image_max_pixels); leave out rows that are longer. Prepare and train with one transformers, and throw away what an older one has cached (overwrite_cache: true)."),
    ),
    # ValueError: Attempted to assign 308 + 104 + 104 = 932 multimodal tokens to 1159 placeholders
    Pattern(
        id="image-placeholders",
        regex=r"Attempted to assign [\d+ =]*?(?P<features>\d+) multimodal tokens to (?P<places>\d+) placeholders",
        meaning=t("vLLM made {features} tokens of the pictures, and the prompt keeps places for {places}: the prompt was made by a processor with other picture sizes, or by another release of transformers.", features="?", places="?"),
        advice=t("Give the same min_pixels and max_pixels to both (mm_processor_kwargs in LLM(...)), and the transformers that this vLLM names; a larger --max-model-len where pictures are cut off."),
    ),
    # ValueError: The number of images does not match the number of <image> tokens in [{'role': 'user', ...}].
    Pattern(
        id="image-marks",
        regex=r"number of (?P<kind>images|videos|audios) does not match the number of <\w+> tokens",
        meaning=t("A row of the data names more or fewer {kind} than its text has marks (<image>) for.", kind="images"),
        advice=t("Count both in each row: as many <image> in the messages as entries in the images column; rows without pictures need an empty list and no mark."),
    ),
    # PIL.UnidentifiedImageError: cannot identify image file '/data/img/003.jpg'   |   OSError: image file is truncated (12 bytes not processed)   |   OSError: broken data stream when reading image file
    Pattern(
        id="image-damaged",
        regex=r"cannot identify image file '?(?P<file>[^'\n]*)'?|image file is truncated \(\d+ bytes not processed\)|broken data stream when reading image file",
        meaning=t("A picture of the data ({file}) cannot be read: it is cut, empty, or another kind of file under that name.", file="?"),
        advice=t("Find them all at once, before the run: open each with PIL and call verify(), and take out what fails. ImageFile.LOAD_TRUNCATED_IMAGES = True lets a run pass cut ones, with grey in place of what is missing."),
        confirms=("file-partly-corrupt",),
    ),
)  # fmt: skip
