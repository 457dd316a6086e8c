"""Times faster than a named baseline, and the verdicts on what must hold."""

import pytest

from core.benchmark.ratios import TARGETS, check_targets, speedups
from tests.core.benchmark.records import failed, record

ARTICLE = record(34.0, variant="article")


def test_a_step_is_compared_with_the_articles_of_the_same_loss_and_size():
    others = [record(1.0, variant="article", loss="RenyiELBO"), record(1.0, variant="article", n_obs=2_000)]
    found = {s.record.variant: s for s in speedups([ARTICLE, record(2.0), *others]) if s.record.loss == "Trace_ELBO"}
    assert found["panel"].times == pytest.approx(17.0)
    assert found["panel"].baseline == ARTICLE


def test_the_baseline_is_the_cpu_also_for_other_devices():
    on_gpu = [record(0.1, placement="gpu"), record(1.0, placement="gpu", variant="article")]
    found = {s.record.variant: s.times for s in speedups([ARTICLE, *on_gpu]) if s.record.placement == "gpu"}
    assert found == pytest.approx({"panel": 340.0, "article": 34.0})


def test_whole_runs_count_their_compilation():
    bar = record(9.0, case="live", variant="numpyro-progress-bar", compile_seconds=1.0)
    live = record(1.0, case="live", variant="live", compile_seconds=1.0)
    assert [s.times for s in speedups([bar, live])] == pytest.approx([1.0, 5.0])


def test_what_did_not_run_has_no_speedup():
    assert speedups([ARTICLE, failed()])[0].record == ARTICLE
    assert len(speedups([ARTICLE, failed()])) == 1


def _finding(records, part):
    return next(found for found in check_targets(records) if part in found.target.name)


def test_targets_without_both_sides_are_not_measured():
    assert {found.holds for found in check_targets([ARTICLE])} == {None}
    assert all("not measured" in found.sentence for found in check_targets([]))


@pytest.mark.parametrize(("seconds", "holds"), [(2.0, True), (3.0, False)])
def test_the_panel_step_must_be_twelve_times_faster(seconds, holds):
    finding = _finding([ARTICLE, record(seconds)], "Trace_ELBO")
    assert finding.value == pytest.approx(34.0 / seconds)
    assert finding.holds is holds
    assert ("missed" in finding.sentence) is not holds


def test_a_structured_fit_is_counted_in_article_steps_with_its_compilation():
    step = record(100.0, variant="article", loss="RenyiELBO", particles=4)
    fit = record(30.0, steps=10, variant="structured", loss="", particles=0, compile_seconds=10.0)
    finding = _finding([step, fit], "scales learned")
    assert finding.value == pytest.approx(40.0)
    assert finding.holds


def test_the_live_loop_is_judged_on_the_small_and_the_large_regression():
    def live(variant, seconds, n_obs):
        return record(seconds, case="live", variant=variant, n_obs=n_obs, compile_seconds=0.0)

    records = [live("fused", 1.0, 100), live("live", 1.2, 100), live("fused", 10.0, 10**5), live("live", 10.8, 10**5)]
    assert _finding(records, "fused one, small").value == pytest.approx(1.2)
    large = _finding(records, "compute-bound")
    assert large.value == pytest.approx(1.08)
    assert large.holds is False


def test_targets_have_names_of_their_own():
    assert len({target.name for target in TARGETS}) == len(TARGETS)


@pytest.mark.parametrize(("ns", "holds"), [(1.2, True), (1.4, False)])
@pytest.mark.parametrize("products", [12_000, 100_000])
def test_a_mini_batch_is_judged_by_the_rows_it_reads_beside_all_products_of_its_market(products, ns, holds):
    def timed(variant, n_products, ns_per_obs_step):
        return record(4.0, case="devices", variant=variant, n_products=n_products, ns_per_obs_step=ns_per_obs_step)

    other = [timed("all-products", 50, 9.0), timed("minibatch-6000", 50, 9.0)]
    found = [*other, timed("all-products", products, 1.0), timed("minibatch-6000", products, ns)]
    finding = _finding(found, f"of {products:,} products")
    assert finding.value == pytest.approx(ns)
    assert finding.holds is holds
