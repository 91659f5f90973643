# The front door. What the verbs do is written in crates/xtask; `make help` lists them.
# `make test PHASE=e2e` (or `make check PHASE=clippy`) runs one phase only.

VERBS := help run check test chaos bench setup clean-cache

.DEFAULT_GOAL := help
.PHONY: $(VERBS)
$(VERBS):
	@cargo run --quiet --package xtask -- $@ $(PHASE)
