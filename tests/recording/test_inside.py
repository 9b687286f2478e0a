"""What a worker sees of itself leaves no trace in its memory."""

import gc
import threading
import weakref

import numpy as np

from barrow.recording.inside import Inside


def test_what_a_task_held_is_free_when_it_ends_though_it_was_looked_at():
    is_seen, is_there, held = threading.Event(), threading.Event(), []

    def compute():
        block = np.ones(10)
        held.append(weakref.ref(block))
        is_there.set()
        is_seen.wait(60)

    gc.disable()
    try:
        thread = threading.Thread(target=compute)
        thread.start()
        is_there.wait(60)
        hot = Inside().look([thread.ident])["hot"]
        is_seen.set()
        thread.join()
        assert list(hot) == [compute.__qualname__.replace("<locals>.", "")]
        assert held[0]() is None
    finally:
        gc.enable()
