"""What a process runs to have riata find none of the modules that Windows lacks."""

HIDE_POSIX_MODULES = """
import builtins
found = builtins.__import__

def without_posix(name, globals=None, *rest, **more):
    if globals and str(globals.get("__name__")).startswith("riata"):
        if name in ("fcntl", "grp", "posix", "pwd", "resource", "termios"):
            raise ImportError(name)
    return found(name, globals, *rest, **more)

builtins.__import__ = without_posix
"""
