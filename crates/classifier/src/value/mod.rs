//! Operands that are small languages of their own.

pub(crate) mod awk;
pub(crate) mod find;
pub(crate) mod jq;
pub(crate) mod regex;
pub(crate) mod sed;
pub(crate) mod test;
