//! `harness completions` and `harness man`: what clap knows, for the shell and for `man`.

use crate::exit::Exit;
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::PathBuf;

/// Print the completions for a shell
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
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  harness man > harness.1\n  harness man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory; it is made when it is not there
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "harness", &mut script);
    print(&script)
}

pub(crate) fn man(args: &ManArgs) -> Exit {
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        return match clap_mangen::Man::new(super::command()).render(&mut page) {
            Ok(()) => print(&page),
            Err(error) => super::fail(Exit::Failed, error),
        };
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(super::command().disable_help_subcommand(true), directory));
    match written {
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

fn print(bytes: &[u8]) -> Exit {
    let mut out = io::stdout().lock();
    // A reader that has seen enough, as `head` has, is no fault.
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed,
        Ok(()) | Err(_) => Exit::Success,
    }
}
