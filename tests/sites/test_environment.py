from barrow.sites.environment import list_search_path, make_environment


def test_the_environment_given_is_not_changed():
    environ = {"OMP_NUM_THREADS": "8"}
    made = make_environment(environ, search_path=[], library_threads=2)
    assert environ == {"OMP_NUM_THREADS": "8"}
    assert made["OMP_NUM_THREADS"] == made["NUMBA_NUM_THREADS"] == "2"


def test_what_the_nanny_left_behind_is_removed_and_what_a_user_chose_is_kept():
    for value, is_kept in (("65536", False), ("1000000", True)):
        made = make_environment(
            {"MALLOC_TRIM_THRESHOLD_": value}, search_path=[], library_threads=1
        )
        assert ("MALLOC_TRIM_THRESHOLD_" in made) == is_kept


def test_entries_that_cannot_be_passed_on_are_left_out():
    assert list_search_path([None, "a:b", "c"], "/x") == ["/x/c"]
