//! The command line: one file a subcommand.

mod agent;
mod approvals;
mod check;
mod classify;
mod completions;
mod decide;
mod doctor;
mod hook;
mod import;
mod init;
mod install;
mod learn;
mod log;
mod mcp;
mod out;
mod place;
mod policy;
mod progress;
mod rules;
mod run;
mod schema;
mod trust;
mod unread;

use crate::exit::Exit;
use crate::words;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use out::say;
use std::ffi::OsString;
use std::num::ParseIntError;
use std::process::ExitCode;

/// Judge, decide, confine and record the commands of a coding agent.
#[derive(Debug, Parser)]
#[command(name = "harness", version, about, long_about = None, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Classify(classify::Args),
    Check(check::CheckArgs),
    Explain(check::ExplainArgs),
    Run(run::RunArgs),
    Exec(run::ExecArgs),
    Agent(agent::AgentArgs),
    Doctor(doctor::DoctorArgs),
    Hook(hook::HookArgs),
    AllowOnce(hook::AllowOnceArgs),
    Init(init::InitArgs),
    Install(install::InstallArgs),
    Uninstall(install::UninstallArgs),
    Mcp(mcp::McpArgs),
    Log(log::LogArgs),
    Approvals(approvals::ApprovalsArgs),
    Rules(rules::RulesArgs),
    Import(import::ImportArgs),
    Learn(learn::LearnArgs),
    Trust(trust::TrustArgs),
    Policy(policy::PolicyArgs),
    Config(policy::ConfigArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

/// What the subcommands that agents call all day are given, without making the parsers of all the others, which takes
/// longer than these do. Nothing when it is another subcommand or there is anything to be said to a person: the whole
/// parser says it then.
fn parse_alone(words: &[OsString]) -> Option<Command> {
    fn args<T: clap::Args>(words: &[OsString]) -> Option<T> {
        let parser = T::augment_args(clap::Command::new("harness"));
        T::from_arg_matches(&parser.try_get_matches_from(words).ok()?).ok()
    }
    // The subcommand's name stands where a program's own would.
    let words = words.get(1..)?;
    match words.first()?.to_str()? {
        "classify" => args(words).map(Command::Classify),
        "check" => args(words).map(Command::Check),
        "run" => args(words).map(Command::Run),
        "exec" => args(words).map(Command::Exec),
        "hook" => args(words).map(Command::Hook),
        _ => None,
    }
}

/// Runs the program with the process's own arguments.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Only help needs the examples of subcommands of subcommands, and only it is worth the time.
    let help = words.iter().any(|word| word == "--help" || word == "-h" || word == "help");
    let alone = if help { None } else { parse_alone(&words) };
    let cli = if let Some(command) = alone {
        Cli { command }
    } else if help {
        Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit())
    } else {
        Cli::try_parse().unwrap_or_else(|mut error| {
            let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            if let Some(advice) = unquoted(&words, &error) {
                fail(Exit::Usage, advice);
                std::process::exit(i32::from(Exit::Usage.code()));
            }
            with_tip(&mut error);
            error.exit()
        })
    };
    let exit = match cli.command {
        Command::Classify(args) => classify::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Explain(args) => check::explain(&args),
        Command::Run(args) => run::run(args),
        Command::Exec(args) => run::exec(args),
        Command::Agent(args) => agent::agent(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        // Its exit codes are the agent's.
        Command::Hook(args) => return hook::hook(&args),
        Command::AllowOnce(args) => hook::allow_once(&args),
        Command::Init(args) => init::init(&args),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Mcp(args) => mcp::mcp(&args),
        Command::Log(args) => log::log(&args),
        Command::Approvals(args) => approvals::approvals(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Import(args) => import::import(&args),
        Command::Learn(args) => learn::learn(&args),
        Command::Trust(args) => trust::trust(&args),
        Command::Policy(args) => policy::policy(&args),
        Command::Config(args) => policy::config(&args),
        Command::Schema(args) => schema::schema(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    };
    exit.into()
}

/// What to say to someone who gave a command as several words where one is expected, or no `--` before it.
fn unquoted(line: &[String], error: &clap::Error) -> Option<String> {
    let [_, sub, rest @ ..] = line else { return None };
    if !matches!(sub.as_str(), "run" | "exec" | "check" | "explain" | "classify") {
        return None;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    let (kind, dashes) = (error.kind(), rest.iter().position(|word| word == "--"));
    let begins = match dashes {
        // A second word is a second use of the one argument there is.
        Some(dashes) if kind == ErrorKind::ArgumentConflict || kind == ErrorKind::UnknownArgument => {
            dashes + 1
        }
        None if kind == ErrorKind::UnknownArgument => {
            rest.iter().position(|word| word == wrong && !word.starts_with('-'))?
        }
        Some(_) | None => return None,
    };
    let command = rest.get(begins..)?;
    // With an option that is wrong or too much, something else is the matter.
    let about_option = wrong.starts_with('-') && !command.contains(wrong);
    if command.is_empty() || about_option || (dashes.is_some() && command.len() == 1) {
        return None;
    }
    let argv = words::line(command);
    // A single word is perhaps a whole line already.
    let line = if let [word] = command { words::in_quotes(word) } else { words::in_quotes(&argv) };
    Some(match sub.as_str() {
        "exec" => format!("the program comes after `--`: `harness exec -- {argv}`"),
        "run" => format!("quote it: `harness run -- {line}`, or `harness exec -- {argv}`"),
        _ => format!("quote it: `harness {sub} -- {line}`"),
    })
}

/// Says what to write where a number was expected: what the standard library says of one is of no use.
fn with_tip(error: &mut clap::Error) {
    let number = error.kind() == ErrorKind::ValueValidation
        && std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<ParseIntError>);
    if number {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec!["write a whole number in digits, as in `60000`".into()]),
        );
    }
}

/// The whole command line. A subcommand of a subcommand shows those of its parent's examples that are its own.
fn command() -> clap::Command {
    // An agent's project is writable where nothing else is said.
    let whole = Cli::command().mut_subcommand("agent", |agent| {
        agent.mut_arg("sandbox", |arg| {
            arg.help("What the kernel lets the commands do [default: workspace_write, unless a policy says otherwise]")
        })
    });
    let names: Vec<String> = whole.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.iter().fold(whole, |whole, name| {
        whole.mut_subcommand(name, |parent| {
            let examples = parent.get_after_help().map(ToString::to_string).unwrap_or_default();
            let children: Vec<String> =
                parent.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
            children.iter().fold(parent, |parent, child| {
                let own = format!("harness {name} {child}");
                let own: Vec<&str> =
                    examples.lines().filter(|line| line.contains(&own)).map(str::trim_end).collect();
                let text = format!("Examples:\n{}", own.join("\n"));
                parent.mut_subcommand(child, |sub| {
                    if own.is_empty() || sub.get_after_help().is_some() { sub } else { sub.after_help(text) }
                })
            })
        })
    })
}

/// Prints an error with what to do about it, and gives back the exit.
fn fail(exit: Exit, message: impl std::fmt::Display) -> Exit {
    say!("harness: {message}");
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &clap::Command, path: &str, check: &mut impl FnMut(&clap::Command, &str)) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name());
            check(sub, &path);
            each(sub, &path, check);
        }
    }

    #[test]
    fn every_subcommand_has_examples_and_they_are_command_lines() {
        let (mut wrong, mut alone_too) = (Vec::new(), 0);
        each(&command(), "harness", &mut |sub, path| {
            let text = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = text.lines().map(str::trim).filter(|line| line.starts_with("harness "));
            let mut own = 0;
            for example in examples {
                for words in crate::unwrap::commands(example).argvs {
                    if words.first().is_some_and(|word| word == "harness") {
                        own += 1;
                        let whole = Cli::try_parse_from(&words);
                        if let Err(error) = &whole {
                            wrong.push(format!("{path}: {example}: {error}"));
                        }
                        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
                        if let (Some(alone), Ok(whole)) = (parse_alone(&words), whole) {
                            assert_eq!(format!("{alone:?}"), format!("{:?}", whole.command), "{example}");
                            alone_too += 1;
                        }
                    }
                }
            }
            if own == 0 {
                wrong.push(format!("`{path} --help` has no example"));
            }
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(alone_too >= 5, "{alone_too}");
    }

    /// The lines of a document's blocks that are typed into a shell.
    fn typed(document: &str) -> Vec<&str> {
        let (mut lines, mut block) = (Vec::new(), None);
        for line in document.lines() {
            block = match (line.strip_prefix("```"), block) {
                (Some(language), None) => Some(language),
                (Some(_), Some(_)) => None,
                (None, block) => {
                    match block {
                        Some("console") => lines.extend(line.strip_prefix("$ ")),
                        Some("sh") => lines.push(line),
                        Some(_) | None => {}
                    }
                    block
                }
            };
        }
        lines
    }

    #[test]
    fn the_lines_of_the_documents_are_command_lines() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut documents = vec![root.join("README.md")];
        documents.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
        let mut tried = 0;
        for document in documents {
            for line in typed(&std::fs::read_to_string(&document).unwrap()) {
                let line = line.split("  #").next().unwrap_or_default();
                for words in crate::unwrap::commands(line).argvs {
                    if words.first().is_some_and(|word| word == "harness") {
                        tried += 1;
                        if let Err(error) = Cli::try_parse_from(&words) {
                            panic!("{}: {line}: {error}", document.display());
                        }
                    }
                }
            }
        }
        assert!(tried >= 20, "{tried}");
    }

    #[test]
    fn a_wrong_number_is_answered_with_what_a_number_is() {
        for line in [
            &["harness", "run", "--timeout-ms", "soon", "--", "ls"][..],
            &["harness", "log", "--limit", "x"],
            &["harness", "log", "show", "x"],
            &["harness", "agent", "goal", "--max-steps", "many"],
        ] {
            let mut error = Cli::try_parse_from(line).unwrap_err();
            with_tip(&mut error);
            assert!(error.to_string().contains("tip: write a whole number"), "{line:?}: {error}");
        }
        let mut other = Cli::try_parse_from(["harness", "check", "--sandbox", "x", "--", "ls"]).unwrap_err();
        with_tip(&mut other);
        assert!(!other.to_string().contains("whole number"), "{other}");
    }

    #[test]
    fn a_command_in_several_words_is_answered_with_how_to_write_it() {
        let advised = |line: &[&str]| {
            let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            unquoted(&words, &Cli::try_parse_from(&words).unwrap_err())
        };
        let run = "quote it: `harness run -- 'git status'`, or `harness exec -- git status`";
        for words in [
            &["harness", "run", "--", "git", "status"][..],
            &["harness", "run", "git", "status"],
            &["harness", "run", "--timeout-ms", "2000", "git", "status"],
        ] {
            assert_eq!(advised(words).unwrap(), run, "{words:?}");
        }
        assert!(advised(&["harness", "run", "git status"]).unwrap().contains("run -- 'git status'`"));
        let exec = "the program comes after `--`: `harness exec -- git log '--format=%h; %s'`";
        assert_eq!(advised(&["harness", "exec", "git", "log", "--format=%h; %s"]).unwrap(), exec);
        let check = advised(&["harness", "check", "--", "git", "commit", "-m", "it is"]).unwrap();
        assert_eq!(check, r"quote it: `harness check -- 'git commit -m '\''it is'\'''`");
        // Every advice is a command line.
        for line in [&["harness", "run", "--", "git status"][..], &["harness", "exec", "--", "git", "status"]]
        {
            assert!(Cli::try_parse_from(line).is_ok(), "{line:?}");
        }
        assert_eq!(advised(&["harness", "run", "--nonsense"]), None);
        assert_eq!(advised(&["harness", "run", "--nonsense", "--", "ls"]), None);
        assert_eq!(advised(&["harness", "nonsense", "ls"]), None);
    }

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
