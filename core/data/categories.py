"""Give every product one category, whatever the rows say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from core.data.choices import Choices
from core.data.columns import CodedColumn, coded
from core.data.draft import Draft, Names
from core.data.findings import Findings, some, spelt
from core.data.naming import natural_key
from core.words import plural

NO_CATEGORY = "(no category)"


def check_category(column: pd.Series, draft: Draft, choices: Choices, findings: Findings) -> Draft:
    """The draft with one category for every product."""
    where, cells = str(column.name), coded(column)
    blank = np.array([not text.strip() for text in cells.texts], dtype=bool)
    unnamed = cells.rows(blank)
    findings.report(
        "category-missing", unnamed, "{rows} name no category", "Fill it in.", where=where, severity="note",
        treatment=f"They take their product's other category, or '{NO_CATEGORY}'.",
        consequence="Products without a category form one of their own.",
    )  # fmt: skip
    texts = [NO_CATEGORY if empty else text for text, empty in zip(cells.texts, blank, strict=True)]
    category = Names(cells.codes, texts)
    of_product = np.zeros(len(draft.product.texts), np.int64)
    products, categories = findings.of_kept(draft.product.codes), findings.of_kept(cells.codes)
    of_product[products] = categories
    if np.array_equal(of_product[products], categories):
        return replace(draft, category=category)
    return _settle_categories(draft, category, blank, where, choices, findings)


def _settle_categories(
    draft: Draft, category: Names, blank: np.ndarray, where: str, choices: Choices, findings: Findings
) -> Draft:
    """Give each product with several categories one, or make it several products, or leave it out."""
    kept, product = findings.kept, draft.product
    pairs = product.codes[kept].astype(np.int64) * len(category.texts) + category.codes[kept]
    pair, rows = np.unique(pairs, return_counts=True)
    of_pair, category_of_pair = np.divmod(pair, len(category.texts))
    # Of categories with as many rows the first by name wins: the order of the file's rows decides nothing.
    by_name = sorted(range(len(category.texts)), key=lambda code: natural_key(category.texts[code]), reverse=True)
    order = np.lexsort((np.argsort(by_name)[category_of_pair], rows, ~blank[category_of_pair]))
    most = np.zeros(len(product.texts), np.int64)
    most[of_pair[order]] = category_of_pair[order]
    named = ~blank[category_of_pair]
    torn = np.bincount(of_pair[named], minlength=len(product.texts)) > 1
    rows_torn = some(torn[product.codes] & kept)
    treatment = {
        "most-frequent": "Each goes into the category of most of its rows.",
        "separate": "Each is a product of its own in every category.",
        "leave-out": "These products are left out.",
    }[choices.category_conflict]
    examples = spelt(CodedColumn(product.codes, product.texts))
    findings.report(
        "category-conflict", rows_torn,
        f"{plural(int(torn.sum()), 'product')} stand in several categories, on {{rows}}",
        "Give each product one category in the file.", where=where, spelt=examples, treatment=treatment,
        choice="category_conflict", consequence="A product learns from its category; it can have one only.",
    )  # fmt: skip
    if choices.category_conflict == "leave-out":
        findings.leave_out(rows_torn, "product in several categories")
    if choices.category_conflict == "separate" and rows_torn is not None:
        own = np.where(blank[category.codes], most[product.codes], category.codes)
        return replace(
            draft, product=_separated(product, Names(own, category.texts), torn), category=Names(own, category.texts)
        )
    return replace(draft, category=Names(most[product.codes], category.texts))


def _separated(product: Names, category: Names, torn: np.ndarray) -> Names:
    pairs = np.where(torn[product.codes], category.codes + 1, 0) + product.codes.astype(np.int64) * (
        len(category.texts) + 1
    )
    pair, codes = np.unique(pairs, return_inverse=True)
    texts = []
    for code, part in zip(*(side.tolist() for side in np.divmod(pair, len(category.texts) + 1)), strict=True):
        texts.append(product.texts[code] + (f" [{category.texts[part - 1]}]" if part else ""))
    return Names(codes, texts)
