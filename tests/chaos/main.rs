//! The action engine under fire: a crowd of light minions, a server that is killed, limits, hangs and huge returns.
//!
//! `make test` runs the short forms; `make chaos` (`SALTERN_CHAOS=long`) the long ones, whose times are asserted too. The
//! size of the crash test can be set by `SALTERN_CHAOS_SEED`, `_MINIONS`, `_ACTIONS`, `_KILLS` and `_DEADLINE`, the
//! number of huge returns by `_HUGE`.

mod chance;
mod crash;
mod crowd;
mod huge;
mod limits;
mod verdict;
