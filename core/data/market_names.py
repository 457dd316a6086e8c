"""Name the products of a demo market as a shop would, so that a first look reads like real data."""

from __future__ import annotations

import numpy as np

from core.data.naming import natural_key

AISLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Coffee": (
        ("Ground Coffee", "Espresso Beans", "Instant Coffee", "Decaf", "Coffee Pads"),
        ("250 g", "500 g", "1 kg"),
    ),
    "Tea": (("Earl Grey", "Green Tea", "Rooibos", "Peppermint Tea", "Chai"), ("20 bags", "50 bags", "100 g")),
    "Breakfast cereals": (("Muesli", "Corn Flakes", "Granola", "Porridge Oats", "Bran"), ("375 g", "500 g", "750 g")),
    "Chocolate": (("Milk Chocolate", "Dark 70 %", "Hazelnut", "White Chocolate", "Pralines"), ("100 g", "200 g")),
    "Crisps and snacks": (("Sea Salt Crisps", "Paprika Crisps", "Tortillas", "Pretzels", "Nuts"), ("90 g", "175 g")),
    "Soft drinks": (("Cola", "Lemonade", "Orangeade", "Ginger Beer", "Tonic"), ("0.33 l", "1 l", "6 x 0.5 l")),
    "Juices": (("Orange Juice", "Apple Juice", "Multivitamin", "Grape Juice", "Tomato Juice"), ("0.75 l", "1 l")),
    "Yoghurt": (("Natural", "Strawberry", "Vanilla", "Greek Style", "Skyr"), ("150 g", "4 x 125 g", "500 g")),
    "Laundry": (("Washing Powder", "Liquid Detergent", "Softener", "Colour Care", "Stain Remover"), ("1 l", "2 l")),
    "Shampoo": (("Repair", "Volume", "Anti-Dandruff", "Sensitive", "Colour Shine"), ("250 ml", "400 ml")),
}
BRANDS = (
    "Harbour", "Northfield", "Maple & Co", "Alba", "Tressel", "Corin", "Bellweather", "Ostara", "Pinehurst", "Vela",
    "Fennwick", "Lumen", "Quillan", "Saltmarsh", "Wren", "Juniper", "Calder", "Ambrose", "Thornby", "Mirren",
)  # fmt: skip


def shop_names(category_of_product: np.ndarray, n_categories: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of products and categories, in natural order within each category: code order is name order."""
    aisles = sorted(AISLES, key=natural_key)
    categories = tuple(
        aisles[c] if n_categories <= len(aisles) else f"{aisles[c % len(aisles)]} {c // len(aisles) + 1}"
        for c in range(n_categories)
    )
    categories = tuple(sorted(categories, key=natural_key))
    products: list[str] = []
    for code, name in enumerate(categories):
        count = int((category_of_product == code).sum())
        products += sorted(_articles(name, count), key=natural_key)
    return tuple(products), categories


def _articles(category: str, count: int) -> list[str]:
    """`count` different articles of one aisle: every brand's first kind before any brand's second."""
    aisle = next(aisle for aisle in AISLES if category.startswith(aisle))
    suffix = category[len(aisle) :]
    kinds, sizes = AISLES[aisle]
    names = []
    for number in range(count):
        rest, brand = divmod(number, len(BRANDS))
        rest, kind = divmod(rest, len(kinds))
        edition, size = divmod(rest, len(sizes))
        kind = (kind + brand) % len(kinds)
        size = (size + brand) % len(sizes)
        words = (BRANDS[brand], kinds[kind] + suffix, sizes[size], f"no. {edition + 1}" if edition else "")
        names.append(" ".join(word for word in words if word))
    return names
