import functools
import subprocess
import sys
import threading
import types

import numpy as np

import barrow
from barrow.model.applied import Form, apply_step
from barrow.running.fingerprint import fingerprint, kind_of_work


def key(func, data=None, **options):
    source = barrow.open(np.zeros(3) if data is None else data)
    step = barrow.Step(func, **options).resolved(source.lengths)
    form = Form(source.lengths, source.dtype, frozenset(source.lengths), frozenset())
    return fingerprint(apply_step(step, [source], form))


def helper(x):
    return x + 1


def test_the_same_call_has_the_same_key():
    assert key(lambda x: helper(x)) == key(lambda x: helper(x))


def test_code_arguments_closures_and_data_change_the_key():
    def scaled(factor):
        return lambda x: x * factor

    keys = [
        key(lambda x: x + 1),
        key(lambda x: x + 2),
        key(lambda x: x - 1),
        key(scaled(2)),
        key(scaled(3)),
        key(functools.partial(np.add, 1)),
        key(functools.partial(np.add, 2)),
        key(np.add, kwargs={"x2": 1}),
        key(np.add, kwargs={"x2": np.arange(3)}),
        key(np.add, kwargs={"x2": np.arange(4)}),
        key(np.sqrt),
        key(np.sqrt, np.ones(3)),
        key(np.sqrt, np.zeros(3, "f4")),
        key(np.sqrt, halo={0: 1}),
        key(np.sqrt, halo={0: 1}, border="mirror"),
        key(np.sqrt, whole=(0,)),
    ]
    assert len(set(keys)) == len(keys)


def test_a_change_in_a_function_that_it_calls_changes_the_key(monkeypatch):
    def caller(x):
        return helper(x)

    before = key(caller)
    monkeypatch.setitem(globals(), "helper", lambda x: x + 2)
    assert key(caller) != before


def test_the_key_is_the_same_in_another_process(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nSCALE = {'a': 1, 'b': {2, 'x', 'y'}}\n"
        "class Model:\n    def __init__(self): self.w = np.arange(3)\n"
        "    def __call__(self, x): return x + SCALE['a']\n"
        "def inner(x): return x\n"
        "def f(x, model=Model()): return model(inner(x))\n"
    )
    (tmp_path / "run.py").write_text(
        "import barrow, numpy as np, mine\n"
        "from barrow.model.applied import Form, apply_step\n"
        "from barrow.running.fingerprint import fingerprint\n"
        "s = barrow.open(np.zeros(3))\n"
        "form = Form(s.lengths, s.dtype, frozenset(s.lengths), frozenset())\n"
        "print(fingerprint(apply_step(barrow.Step(mine.f), [s], form)))\n"
    )
    command = [sys.executable, "run.py"]
    keys = {subprocess.check_output(command, cwd=tmp_path, text=True) for _ in range(3)}
    assert len(keys) == 1
    (tmp_path / "mine.py").write_text(
        (tmp_path / "mine.py").read_text().replace("x + SCALE", "x - SCALE")
    )
    assert subprocess.check_output(command, cwd=tmp_path, text=True) not in keys


def test_what_a_function_uses_of_the_users_own_modules_counts(monkeypatch):
    mine = types.ModuleType("my_own_module")
    mine.inner = types.ModuleType("my_own_module.inner")
    mine.inner.inner = mine
    mine.inner.helper = lambda x: x + 1
    mine.inner.unused = 1
    monkeypatch.setitem(sys.modules, "my_own_module", mine)

    def caller(x):
        return mine.inner.helper(x)

    before = key(caller)
    mine.inner.unused = 2
    assert key(caller) == before
    mine.inner.helper = lambda x: x + 2
    assert key(caller) != before


def test_a_function_in_a_wrapper_counts_with_its_code():
    keys = {
        key(wrap(func))
        for wrap in (functools.cache, np.vectorize, functools.partial)
        for func in (lambda x: x + 1, lambda x: x + 2)
    }
    assert len(keys) == 6


def test_what_cannot_be_told_apart_has_no_key():
    lock = threading.Lock()
    assert key(lambda x: lock and x) is None


def test_of_a_huge_array_only_some_values_count_for_the_kind_of_work():
    def kind(array):
        source = barrow.open(np.zeros(3))
        step = barrow.Step(lambda x: x + array[0])
        form = Form(source.lengths, source.dtype, frozenset(source.lengths), frozenset())
        return kind_of_work(apply_step(step, [source], form), ("facts",))

    huge = np.broadcast_to(np.float64(1), (2**20, 2**20))
    assert kind(huge) == kind(huge) != kind(huge[1:])
    assert kind(np.zeros(10)) != kind(np.ones(10))


def test_a_global_that_is_called_like_an_attribute_does_not_count():
    def make(shape):
        space = {"shape": shape}
        exec("def func(x): return x.reshape(x.shape)", space)
        return space["func"]

    assert key(make(1)) == key(make(2))


def test_a_function_has_the_same_key_when_it_has_travelled():
    import cloudpickle

    offset = 3

    class Scale:
        shape = 2

        def __call__(self, x):
            return helper(x) * self.shape + offset

    func = Scale()
    assert key(cloudpickle.loads(cloudpickle.dumps(func))) == key(func)


def test_what_an_object_with_a_name_holds_counts():
    class Named:
        def __init__(self, level):
            self.level = level
            self.__name__ = "named"

        def __call__(self, x):
            return x + self.level

    keys = {key(Named(level)) for level in (1, 2)}
    assert len(keys) == 2
    assert None not in keys
    assert key(Named(1)) in keys
