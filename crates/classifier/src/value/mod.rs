//! Operands that are small languages of their own.

pub(crate) mod test;
