//! Runs a command in a kernel sandbox with bounded time and output, and says what was enforced.
