//! The tables against the option lists of the programs that are installed here.

use cmdgate_classifier::commands::ALL;
use xtask::audit::flags::audit;

/// Subcommands of git that stand for the others, whose rows come from the same lists.
const GIT: [&str; 6] = ["git log", "git diff", "git status", "git branch", "git grep", "git config get"];

// contract: X2
#[test]
fn no_row_contradicts_the_program_it_was_checked_against() {
    let mut programs: Vec<String> = GIT.into_iter().map(str::to_owned).collect();
    programs.extend(ALL.iter().map(|spec| spec.name()).filter(|name| *name != "git").map(str::to_owned));
    let report = audit(&programs).unwrap();
    let checked: Vec<_> = report.tables.iter().filter(|table| table.is_checked_version()).collect();
    let errors: Vec<_> = checked
        .iter()
        .flat_map(|table| table.errors.iter().map(|error| format!("{}: {error}", table.table)))
        .collect();
    assert!(errors.is_empty(), "run `cargo xtask audit flags`:\n{}", errors.join("\n"));
    // Another version may have other flags; the tables hold back what they do not know.
    let other: Vec<_> = report
        .tables
        .iter()
        .filter(|table| !table.is_checked_version())
        .map(|table| format!("{} [{}]", table.table, table.version))
        .collect();
    println!("{} tables compared; of another version: {}", checked.len(), other.join(", "));
    println!("not installed: {}", report.absent.join(" "));
    assert!(!checked.is_empty(), "no program of a checked version is installed");
}
