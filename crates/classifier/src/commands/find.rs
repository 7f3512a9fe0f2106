//! `find`

use crate::spec::CommandSpec;

pub(super) static SPEC: CommandSpec = CommandSpec { names: &["find"], ..CommandSpec::UNREAD };
