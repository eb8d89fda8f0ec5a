"""Which tests are run when: `make quick` runs QUICK, `make test` all but SLOW, CI these and SLOW without RARE, and
`make test-all` everything. What is RARE is SLOW as well.

Names begin with the file, below `tests/`; a name stands for all tests whose name begins with it.
"""

from __future__ import annotations

import pytest

SLOW: tuple[str, ...] = (
    "artifact/test_forgeries.py::test_no_untrue_plan_is_accepted",
    "artifact/test_hostile_files.py::test_every_family_is_answered",
    "artifact/test_killed.py::test_nothing_is_torn_and_nothing_stays[lines-9]",
    "artifact/test_two_opinions.py::test_both_judge_files_forged_in_every_field_alike",
    "cli/test_init.py::test_a_new_file_solves_at_once[multi-lte]",
    "cli/test_plan_cli.py::test_the_law_of_the_sum",
    "export/test_survey_page.py::test_a_phone_sends_one_message",
    "plan/test_best.py::test_no_method_is_better[options2]",
    "plan/test_best.py::test_no_method_is_better[options3]",
    "plan/test_demands.py::test_any_two_contributions[f1]",
    "plan/test_demands.py::test_no_sum_is_worse_than_geometric_noise[True]",
    "plan/test_demands.py::test_small_plans[4-",
    "plan/test_demands.py::test_small_plans[6-",
    "plan/test_divisible.py::test_the_certificate_holds_against_brute_force[mse-none]",
    "plan/test_divisible.py::test_the_certificate_holds_against_brute_force[two of three-none]",
    "plan/test_divisible.py::test_the_certificate_holds_against_brute_force[unequal parties-none]",
    "plan/test_divisible.py::test_the_certificate_holds_against_brute_force[unequal people-none]",
    "plan/test_divisible.py::test_the_certificate_holds_against_brute_force[weighted-none]",
    "plan/test_divisible.py::test_the_epsilon_is_nearly_reached_without_a_contraction",
    "plan/test_joint.py::test_figures_to_hold[2-12-",
    "plan/test_joint.py::test_figures_to_hold[2-50-",
    "plan/test_joint.py::test_figures_to_hold[3-20-",
    "plan/test_joint.py::test_figures_to_hold[5-10-",
    "plan/test_joint.py::test_random_problems[0]",
    "plan/test_joint.py::test_random_problems[4]",
    "plan/test_joint.py::test_random_problems[6]",
    "plan/test_joint.py::test_random_problems[9]",
    "plan/test_joint.py::test_random_problems[11]",
    "plan/test_joint.py::test_random_problems[23]",
    "recheck/test_recheck.py::test_both_accept_plans[shares, half honest]",
    "recheck/test_recheck.py::test_both_accept_plans[two of three]",
    "recheck/test_recheck.py::test_both_accept_plans[weighted]",
    "recheck/test_recheck.py::test_both_judge_damaged_files_alike",
    "sweeps/test_sweep.py::test_a_real_cluster_finds_the_same",
    "sweeps/test_sweep.py::test_goes_on_where_it_was_stopped[SIGINT-2]",
    "test_pages.py::test_page_with_all_that_is_costly",
    "test_same_everywhere.py",
    "test_solution.py::test_problem_library[paper-a/figure-5-m2-p005-n200]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m2-p01-n",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p005-n100]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p005-n200]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p01-n100]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p01-n200]",
    "test_solution.py::test_problem_library[paper-a/figure-6-",
    "test_solution.py::test_problem_library[paper-a/figure-8]",
    "test_solution.py::test_problem_library[paper-a/figure-8-never-worse]",
    "test_solution.py::test_problem_library[paper-a/five-teams]",
    "test_solution.py::test_problem_library[paper-a/hr-large-subsidiary",
    "test_solution.py::test_problem_library[paper-a/hr-teams-merged",
    "test_solution.py::test_problem_library[paper-a/hr-ten-teams-divisible]",
    "test_solution.py::test_problem_library[paper-a/hr-two-subsidiaries]",
    "test_solution.py::test_problem_library[paper-a/three-offices]",
    "test_solution.py::test_problem_library[paper-a/two-branches]",
    "test_solution.py::test_problem_library[paper-a/two-halls-divisible]",
    "test_solution.py::test_problem_library[paper-e/twitch]",
    "test_solution.py::test_problem_library[use-cases/average-absence]",
    "test_solution.py::test_problem_library[use-cases/half-days-of-absence]",
    "test_solution.py::test_problem_library[use-cases/hospitals-one-may-talk]",
    "test_solution.py::test_problem_library[use-cases/hospitals-range]",
    "test_solution.py::test_problem_library[use-cases/two-offices-several-worlds]",
    "test_solution.py::test_problem_library[use-cases/two-offices-two-guarantees]",
)

RARE: tuple[str, ...] = (
    "plan/test_plan_bound.py::test_no_plan_is_below",
    "plan/test_seeded.py::test_more_random_problems",
    "test_examples.py::test_example[figure_5.py]",
    "test_examples.py::test_example[figure_6.py]",
    "test_examples.py::test_example[figure_7.py]",
    "test_examples.py::test_example[figure_8.py]",
    "test_examples.py::test_example[wrong_world.py]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m2-p005-n200]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m2-p01-n",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p005-n200]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p01-n100]",
    "test_solution.py::test_problem_library[paper-a/figure-5-m5-p01-n200]",
    "test_solution.py::test_problem_library[paper-a/figure-6-",
    "test_solution.py::test_problem_library[paper-a/figure-8-never-worse]",
    "test_solution.py::test_problem_library[paper-a/five-teams]",
    "test_solution.py::test_problem_library[paper-a/hr-large-subsidiary",
    "test_solution.py::test_problem_library[paper-a/hr-teams-merged",
    "test_solution.py::test_problem_library[paper-a/hr-two-subsidiaries]",
    "test_solution.py::test_problem_library[use-cases/hospitals-range]",
)

QUICK: tuple[str, ...] = (
    # certificates refuse what is not private, and claims round to the private side
    "single/test_certify.py::test_epsilon_is_exact_to_many_digits",
    "single/test_certify.py::test_a_slightly_less_private_matrix_fails",
    "single/test_certify.py::test_geometric_noise_is_exactly_the_baseline",
    "artifact/test_verify.py::test_false_claims",
    "artifact/test_verify.py::test_claims_round_to_the_private_side",
    "artifact/test_forgeries.py",
    # both checkers agree, and verify needs no solver
    "recheck/test_recheck.py::test_both_accept_what",
    "recheck/test_recheck.py::test_both_accept_plans[joint]",
    "recheck/test_recheck.py::test_both_accept_plans[inside]",
    "recheck/test_recheck.py::test_both_accept_plans[divisible]",
    "recheck/test_recheck.py::test_both_accept_plans[shares]",
    "recheck/test_recheck.py::test_both_judge_forged_artifacts_alike",
    "recheck/test_recheck.py::test_a_claim_that_is_a_little_lower_is_refused_by_both",
    "shuffle/test_metric_solve.py::test_every_mechanism_at_the_same_promise",
    "test_verify_alone.py",
    # a problem of every kind is solved, and gives what it is known to give
    "test_solution.py::test_problem_library[paper-a/example-1]",
    "test_solution.py::test_problem_library[paper-a/two-offices-small]",
    "test_solution.py::test_problem_library[paper-a/two-offices-divisible]",
    "test_solution.py::test_problem_library[paper-b/krr10]",
    "test_solution.py::test_problem_library[paper-b/histogram]",
    "test_solution.py::test_problem_library[paper-b/real-sum]",
    "test_solution.py::test_problem_library[paper-c/table1]",
    "test_solution.py::test_problem_library[paper-d/geo-shuffle]",
    "test_solution.py::test_problem_library[paper-e/example]",
    "test_solution.py::test_problem_library[use-cases/sick-leave]",
    # several releases keep a total; a ledger refuses what exceeds its own, and what was changed or cut
    "numbers/test_composition.py::test_the_rule_of_a_ledger_holds_for_who_chooses_by_what_was_seen",
    "single/test_over_time.py::test_no_course_of_events_exceeds_the_total",
    "ledger/test_ledger.py::test_what_exceeds_the_total_is_refused_and_nothing_is_written",
    "ledger/test_ledger.py::test_damage_is_found",
    "ledger/test_writers.py::test_two_writers_lose_nothing",
    # samplers in every language draw the same releases, and what is written is written whole
    "export/test_agreement.py::test_the_same_words_give_the_same_releases",
    "mechanism/test_drawing.py",
    "mechanism/test_matrix.py",
    "artifact/test_format.py::test_a_failing_write_leaves_nothing",
    "artifact/test_killed.py::test_only_the_temporaries_of_the_dead_are_removed",
    "artifact/test_killed.py::test_killed_between_two_renames_the_only_copies_are_kept",
    # the command line refuses in one line, and objects behave
    "cli/test_cli.py::test_bad_problems_are_one_line_and_exit_2",
    "cli/test_named_files.py::test_a_problem_reads_nothing_outside_its_folder",
    "test_objects.py",
)


UNKNOWN = pytest.StashKey[list[str]]()
"""Names above that no test has, where all tests were collected."""


if __name__ == "__main__":
    print(*sorted({"tests/" + name.partition("::")[0] for name in QUICK}))
