"""Settings for all tests."""

from hypothesis import Phase, settings

#: For tools/mutants.py, which wants to know whether a test fails and not for which smallest input.
settings.register_profile("mutants", phases=[Phase.explicit, Phase.generate])
