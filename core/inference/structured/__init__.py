"""The structured engine: the best Gaussian posterior by Newton steps, exploiting that products are independent given
their category. `docs/method.md` derives it."""
