//! `cargo xtask docs`: writes `docs/commands.md` from the tables, or checks that it is up to date.

use crate::steps::root;
use anyhow::{Context, Result, bail};
use cmdgate_classifier::commands::ALL;
use cmdgate_classifier::spec::{CommandSpec, Flag, Stance};
use cmdgate_classifier::{Code, Condition};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};

/// Where the document stands.
const PATH: &str = "docs/commands.md";

/// Writes the document, or with `check` fails when it is not up to date.
pub fn run(check: bool) -> Result<()> {
    let path = root().join(PATH);
    let text = document()?;
    if check {
        let found = fs::read_to_string(&path).with_context(|| format!("reading {PATH}"))?;
        if found != text {
            bail!("{PATH} is not up to date with the tables: run `cargo xtask docs`");
        }
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("the document has a directory")?)?;
    fs::write(&path, text)?;
    writeln!(io::stdout(), "wrote {PATH}")?;
    Ok(())
}

fn document() -> Result<String> {
    let mut out = String::new();
    let mut specs: Vec<&CommandSpec> = ALL.to_vec();
    specs.sort_by_key(|spec| spec.name());
    let (refused, judged): (Vec<&CommandSpec>, Vec<&CommandSpec>) =
        specs.into_iter().partition(|spec| matches!(spec.stance, Stance::Refused(_)));
    writeln!(
        out,
        "# Commands\n\n\
         Made from the tables by `cargo xtask docs`; do not edit. {} programs are judged by their flags and operands, {} \
         more are known and never safe, and every other program needs review.\n\n\
         A flag that is not listed here needs review. What an operand may be is judged as well: a path must lie inside the \
         project.\n",
        judged.len(),
        refused.len()
    )?;
    out.push_str("## Conditions\n\nA safe verdict holds under the conditions that it names.\n\n");
    for condition in Condition::ALL {
        writeln!(out, "- `{}`: {}", condition.as_str(), condition.meaning().trim())?;
    }
    out.push_str("\n## Reason codes\n\n| code | meaning | for example |\n|---|---|---|\n");
    for code in Code::ALL {
        let example = code.example().replace('\u{b}', "\\v").replace('|', "\\|");
        writeln!(out, "| `{}` | {} | `{example}` |", code.as_str(), code.meaning().trim())?;
    }
    out.push_str("\n## Programs\n");
    for spec in &judged {
        writeln!(out, "\n### `{}`\n", spec.names.join("`, `"))?;
        program(&mut out, spec)?;
        subcommands(&mut out, spec.subcommands, spec.name())?;
    }
    out.push_str("\n## Known and never safe\n\n| program | why |\n|---|---|\n");
    for spec in &refused {
        if let Stance::Refused(why) = spec.stance {
            writeln!(out, "| `{}` | {why} |", spec.names.join("`, `"))?;
        }
    }
    Ok(out)
}

fn program(out: &mut String, spec: &CommandSpec) -> Result<()> {
    write!(out, "{}", capitalised(spec.about))?;
    if spec.checked.is_empty() {
        out.push_str(".\n");
    } else {
        writeln!(out, " (checked against {}).", spec.checked)?;
    }
    let conditions: Vec<&str> = spec.conditions.iter().map(Condition::as_str).collect();
    if !conditions.is_empty() {
        writeln!(out, "\nUnder: `{}`.", conditions.join("`, `"))?;
    }
    let (harmless, held): (Vec<&Flag>, Vec<&Flag>) =
        spec.flags.iter().partition(|flag| flag.effect.code().is_none() || !flag.conditions.is_empty());
    if !harmless.is_empty() {
        let names: Vec<String> = harmless.iter().map(|flag| flag.names.join(" ")).collect();
        writeln!(out, "\nHarmless: `{}`.", names.join("`, `"))?;
    }
    if !held.is_empty() {
        out.push_str("\nHeld back:\n\n");
        for flag in held {
            let code = flag.effect.code().map_or("", Code::as_str);
            writeln!(out, "- `{}`: {} ({code})", flag.names.join("` `"), flag.why)?;
        }
    }
    Ok(())
}

fn subcommands(out: &mut String, specs: &[CommandSpec], parent: &str) -> Result<()> {
    let refused: Vec<&CommandSpec> =
        specs.iter().filter(|spec| matches!(spec.stance, Stance::Refused(_))).collect();
    for spec in specs.iter().filter(|spec| spec.stance == Stance::Judged) {
        let path = format!("{parent} {}", spec.name());
        writeln!(out, "\n#### `{path}`\n")?;
        program(out, spec)?;
        subcommands(out, spec.subcommands, &path)?;
    }
    if !refused.is_empty() {
        writeln!(out, "\nNever safe under `{parent}`:\n")?;
        for spec in refused {
            if let Stance::Refused(why) = spec.stance {
                writeln!(out, "- `{}`: {why}", spec.names.join("`, `"))?;
            }
        }
    }
    Ok(())
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
