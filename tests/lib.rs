//! End to end
