//! Whole-product tests of cmdgate: shared helpers.
