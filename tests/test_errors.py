from robustmd.errors import listed


def test_a_message_lists_ten_names_and_how_many_there_are() -> None:
    assert listed(["a"]) == "a"
    assert listed([str(n) for n in range(10)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert listed(["a", "b", "c"], most=2) == "a, b, … (3 in all)"
    assert len(listed([f"domain_{n}" for n in range(1000)])) < 150
