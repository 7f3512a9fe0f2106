//! Development tasks of cmdgate, as a library so that tests run the same code.

pub mod audit;
