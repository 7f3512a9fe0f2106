//! `harness schema`: the JSON Schema of everything that is printed as JSON.

use super::log::print;
use crate::exit::Exit;

/// Print the JSON Schema of what the subcommands print with --json
///
/// Each form is under `$defs` and says which subcommand prints it. `harness policy schema` prints the one of policy files.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness schema > harness.schema.json\n  harness schema | jq '.\"$defs\" | keys'"
)]
pub(crate) struct SchemaArgs {}

pub(crate) fn schema(_: &SchemaArgs) -> Exit {
    print(crate::wire::SCHEMA).unwrap_or_else(|exit| exit)
}
