//! Development tasks of cmdgate, as a library so that tests run the same code.

pub mod audit;
pub mod bench;
pub mod demo;
pub mod docs;
pub mod fuzz;
pub mod packages;
pub mod steps;
pub mod test;
pub mod tidy;
