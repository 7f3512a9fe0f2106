//! `harness completions` and `harness man`: what clap knows, for the shell and for `man`.

use super::out;
use crate::exit::Exit;
use clap_complete::Shell;
use clap_mangen::{Man, roff};
use jiff::Timestamp;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// Print the completions for a shell
///
/// They go where the shell looks for them, as below; make the directory when it is not there. bash needs its package
/// bash-completion, and zsh a line `fpath+=~/.zfunc` before `compinit` in ~/.zshrc. A new shell then knows them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness completions bash > ~/.local/share/bash-completion/completions/harness\n  \
    harness completions zsh > ~/.zfunc/_harness\n  harness completions fish > ~/.config/fish/completions/harness.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write the pages of all subcommands into a directory
///
/// They bear the date of today, or of SOURCE_DATE_EPOCH.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness man > harness.1\n  harness man ~/.local/share/man/man1\n  harness man | man -l -"
)]
pub(crate) struct ManArgs {
    /// The directory; it is made when it is not there
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Exit {
    let mut command = super::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "harness", &mut script);
    if args.shell == Shell::Fish {
        script.extend(fish_values(&command).into_bytes());
    }
    print(&script)
}

/// What the generator leaves out for fish: the values of arguments that are no options, such as the agent of `harness hook`.
fn fish_values(command: &clap::Command) -> String {
    let mut script = String::new();
    for sub in command.get_subcommands() {
        values_of(sub, &format!("__fish_harness_using_subcommand {}", sub.get_name()), 2, &mut script);
        for below in sub.get_subcommands() {
            let using = format!(
                "__fish_harness_using_subcommand {}; and __fish_seen_subcommand_from {}",
                sub.get_name(),
                below.get_name()
            );
            values_of(below, &using, 3, &mut script);
        }
    }
    script
}

fn values_of(command: &clap::Command, using: &str, words: usize, script: &mut String) {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    let Some(first) = command.get_positionals().next() else { return };
    // Others follow that are files: then only where the first one stands.
    let here = if command.get_positionals().count() > 1 {
        format!("; and test (count (commandline -opc)) -eq {words}")
    } else {
        String::new()
    };
    for value in first.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| quoted(&help.to_string())).unwrap_or_default();
        let _ = writeln!(
            script,
            "complete -c harness -n \"{using}{here}\" -f -a '{}' -d '{help}'",
            quoted(value.get_name())
        );
    }
}

pub(crate) fn man(args: &ManArgs) -> Exit {
    let mut command = super::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else {
        return match page(&command) {
            Ok(page) => print(&page),
            Err(error) => super::fail(Exit::Failed, error),
        };
    };
    match std::fs::create_dir_all(directory).and_then(|()| write_pages(&command, directory)) {
        Ok(()) => print(format!("wrote the pages to {}\n", directory.display()).as_bytes()),
        Err(error) => super::fail(
            Exit::Failed,
            format_args!(
                "cannot write to {}: {error}; name a directory that you may write",
                directory.display()
            ),
        ),
    }
}

fn write_pages(command: &clap::Command, directory: &Path) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(sub, directory)?;
    }
    std::fs::write(directory.join(Man::new(command.clone()).get_filename()), page(command)?)
}

/// One page. The generator's own has no date and no source, a synopsis without values, and examples that are filled like a
/// paragraph, so that they cannot be typed.
fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone())
        .date(date())
        .source(concat!("harness ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    let usage = command.clone().render_usage().to_string();
    verbatim("SYNOPSIS", usage.trim_start_matches("Usage:").lines(), &mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(help) = command.get_after_help() {
        let help = help.to_string();
        verbatim("EXAMPLES", help.lines().filter(|line| line.trim() != "Examples:"), &mut text)?;
    }
    Ok(without_double_breaks(&text))
}

/// A section whose lines stay as they are.
fn verbatim<'a>(
    title: &str,
    lines: impl Iterator<Item = &'a str>,
    page: &mut dyn io::Write,
) -> io::Result<()> {
    let mut roff = roff::Roff::new();
    roff.control("SH", [title]).control("nf", []);
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        roff.text([roff::roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(page)
}

/// An empty line is written as the space that it makes, and a line break beside a space, which says nothing and of which
/// `mandoc` warns, is left out.
fn without_double_breaks(page: &[u8]) -> Vec<u8> {
    const SPACE: &[u8] = b".sp\n";
    let lines = page.split_inclusive(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = lines.map(|line| if line == b"\n" { SPACE } else { line }).collect();
    let is_space = |at: Option<usize>| at.and_then(|at| lines.get(at)).is_some_and(|line| *line == SPACE);
    let kept = lines.iter().enumerate().filter(|(at, line)| {
        **line != b".br\n" || !(is_space(at.checked_sub(1)) || is_space(at.checked_add(1)))
    });
    kept.flat_map(|(_, line)| line.iter().copied()).collect()
}

/// The day that a page bears; a package that is built anew sets `SOURCE_DATE_EPOCH`, so that it comes out the same.
fn date() -> String {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|seconds| seconds.parse().ok());
    let at = set.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or_else(Timestamp::now);
    at.strftime("%F").to_string()
}

fn print(bytes: &[u8]) -> Exit {
    out::write_raw(bytes).map_or_else(|exit| exit, |()| Exit::Success)
}
