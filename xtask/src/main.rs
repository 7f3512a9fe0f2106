//! Development tasks of cmdgate.
fn main() {}
