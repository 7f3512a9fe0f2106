//! `harness init`: a first policy for a project.

use super::log::print;
use crate::config::PROJECT_FILE;
use crate::exit::Exit;
use crate::init::propose;
use crate::present::printable;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Write a commented policy for this project, after looking at what is in it
///
/// A file that is there already stays as it is. Until `harness trust`, the new file can only make things stricter.
///
/// Exit status: 0 written, 1 there is one already, 125 it cannot be written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  harness init --dry-run\n  harness init && harness policy lint && harness trust"
)]
pub(crate) struct InitArgs {
    /// Project root [default: the enclosing git repository, or the current directory]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Print the policy, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Write over a file that is there already
    #[arg(long)]
    force: bool,
}

pub(crate) fn init(args: &InitArgs) -> Exit {
    run(args).unwrap_or_else(|exit| exit)
}

fn run(args: &InitArgs) -> Result<Exit, Exit> {
    let current = super::place::current()?;
    let root = args
        .root
        .as_ref()
        .map_or_else(|| super::place::enclosing_repository(&current), |root| current.join(root));
    if !root.is_dir() {
        return Err(super::fail(
            Exit::Failed,
            format_args!("--root {}: there is no such directory", printable(&root.to_string_lossy())),
        ));
    }
    let proposal = propose(&root).map_err(|error| super::fail(Exit::Failed, error))?;
    if args.dry_run {
        return print(&proposal.text);
    }
    let file = root.join(PROJECT_FILE);
    write(&file, &proposal.text, args.force)?;
    let mut text = String::new();
    for line in &proposal.seen {
        let _ = writeln!(text, "saw {}", printable(line));
    }
    let _ = writeln!(
        text,
        "wrote {}\nNext: read it, change it, and say `harness trust`. Until then it can only make things stricter.",
        file.display()
    );
    print(&text)
}

/// Puts a whole file in place; never through a link, and over another file only when that was asked for.
fn write(file: &Path, text: &str, force: bool) -> Result<(), Exit> {
    let shown = file.display();
    match fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(super::fail(Exit::Failed, format_args!("cannot look at {shown}: {error}"))),
        Ok(meta) if !meta.is_file() => {
            return Err(super::fail(
                Exit::Unwell,
                format_args!(
                    "{shown} is not a regular file, and nothing is written through it; remove it first"
                ),
            ));
        }
        Ok(_) if !force => {
            return Err(super::fail(
                Exit::Unwell,
                format_args!("{shown} is there already; --dry-run prints a new one, --force writes over it"),
            ));
        }
        Ok(_) => {}
    }
    let failed = |error: io::Error| super::fail(Exit::Failed, format_args!("cannot write {shown}: {error}"));
    let directory = file.parent().unwrap_or(Path::new("."));
    // What the library says of it names a file that nobody asked for.
    let mut new = tempfile::NamedTempFile::new_in(directory).map_err(|error| {
        let why = error.kind();
        super::fail(Exit::Failed, format_args!("cannot write {shown}: {why}; --dry-run prints it instead"))
    })?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        new.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(failed)?;
    }
    // Without --force a file that appeared meanwhile stays.
    let put = if force { new.persist(file) } else { new.persist_noclobber(file) };
    put.map(|_| ()).map_err(|error| failed(error.error))
}
