"""Functions that are interrupted at one of their calls."""


def interrupted_at(call, function):
    """The function, whose call of this number (from 1) raises KeyboardInterrupt instead."""
    left = [call]

    def interrupted(*args):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return function(*args)

    return interrupted
