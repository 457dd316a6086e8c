"""Settings come from defaults and environment; what does not parse is named, all at once."""

from dataclasses import fields
from pathlib import Path

import pytest

from core.errors import UserError
from core.settings import Settings, load_settings, variable


def test_the_environment_overrides_a_default():
    settings = load_settings({"ISOELASTIC_DATA_DIR": "elsewhere", "ISOELASTIC_UPLOAD_MB": "12"})
    assert settings.data_dir == Path("elsewhere")
    assert settings.upload_mb == 12


def test_every_value_that_does_not_parse_is_named():
    with pytest.raises(UserError) as caught:
        load_settings({"ISOELASTIC_UPLOAD_MB": "big", "ISOELASTIC_MEMORY_SHARE": "most"})
    assert {problem.where for problem in caught.value.problems} == {"ISOELASTIC_UPLOAD_MB", "ISOELASTIC_MEMORY_SHARE"}


def test_every_setting_has_help_and_a_variable_of_its_own():
    variables = {variable(f.name) for f in fields(Settings)}
    assert len(variables) == len(fields(Settings))
    assert all(f.metadata["help"] for f in fields(Settings))


@pytest.mark.parametrize("text", ["-1", "nan", "inf"])
def test_a_limit_below_zero_or_without_end_is_refused(text):
    with pytest.raises(UserError) as caught:
        load_settings({"ISOELASTIC_QUOTA_GB": text, "ISOELASTIC_MAX_COLUMNS": text})
    assert {problem.where for problem in caught.value.problems} == {"ISOELASTIC_QUOTA_GB", "ISOELASTIC_MAX_COLUMNS"}
