//! The tools that a model is given: what each is, what its arguments are, and what a call of it does.
//!
//! One table, [`TOOLS`], is read by the run loop and by the providers; [`SERVED`] holds what the MCP server offers, some of
//! it the same. A call goes through [`Toolbox::call`], which checks the arguments, lets the gate decide, and records what
//! was decided and what came of it.

mod arguments;
mod background;
mod call;
mod files;
mod permission;
mod schema;

pub use background::Backgrounds;
pub use call::{ToolReply, Toolbox};
pub(crate) use files::read_approved;
pub use permission::{Permission, PermissionSource, compose};

use crate::gate::Action;
use crate::session::{SHELL_CEILING, Session};
use serde_json::Value;
use std::time::Duration;

/// What a tool is, and what calling it can do. The annotations are those of the Model Context Protocol.
#[derive(Debug)]
pub struct ToolSpec {
    /// The name by which the model calls it.
    pub name: &'static str,
    /// For the model: what it does.
    pub description: &'static str,
    /// The set it belongs to.
    pub group: Group,
    /// Its kind.
    pub category: Category,
    /// What calling it can do.
    pub annotations: Annotations,
    /// Whether calls may overlap.
    pub execution: ExecutionMode,
    /// No call takes longer, whatever its arguments say. `None`: the settings bound it, or it does not wait.
    pub ceiling: Option<Duration>,
    /// Which files it may be asked about.
    pub path_access: PathAccess,
    pub(crate) tool: Tool,
    parameters: fn() -> Value,
    output: Option<fn() -> Value>,
}

/// A set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Commands.
    ShellBuiltins,
    /// Files.
    FileBuiltins,
}

impl Group {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ShellBuiltins => "shell_builtins",
            Self::FileBuiltins => "file_builtins",
        }
    }
}

/// The kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Runs commands.
    Shell,
    /// Reads or writes files.
    Files,
}

impl Category {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Files => "files",
        }
    }
}

/// Hints about what calling a tool can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Calling it again changes nothing more.
    pub idempotent: bool,
    /// It may reach beyond the project.
    pub open_world: bool,
}

/// Whether calls of a tool may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionMode {
    /// One after the other.
    Sequential,
    /// At the same time.
    Parallel,
}

impl ExecutionMode {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Parallel => "parallel",
        }
    }
}

/// Which files a tool may be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathAccess {
    /// Those of the project, and of the roots that the settings add.
    CurrentProject,
    /// None.
    None,
}

impl PathAccess {
    /// The stable spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CurrentProject => "current_project",
            Self::None => "none",
        }
    }
}

/// Every tool, for matching in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Shell,
    ShellCheck,
    ShellRead,
    Exec,
    ShellStart,
    ShellPoll,
    ShellKill,
    ReadFile,
    WriteFile,
    ListDir,
}

const OF_SHELL: Annotations =
    Annotations { read_only: false, destructive: true, idempotent: false, open_world: true };
const READS: Annotations =
    Annotations { read_only: true, destructive: false, idempotent: true, open_world: false };

const SHELL: ToolSpec = ToolSpec {
    name: "shell",
    description: "Run a command line with bash in the project and wait for its end. What is known to only read \
                  runs at once; anything else follows the policy.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: OF_SHELL,
    execution: ExecutionMode::Sequential,
    ceiling: Some(SHELL_CEILING),
    path_access: PathAccess::CurrentProject,
    tool: Tool::Shell,
    parameters: schema::shell,
    output: Some(schema::run_output),
};

const EXEC: ToolSpec = ToolSpec {
    name: "exec",
    description: "Run one program with its arguments, without any shell: every byte of an argument reaches the \
                  program as it is. For builds and tests.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: OF_SHELL,
    execution: ExecutionMode::Sequential,
    ceiling: None,
    path_access: PathAccess::CurrentProject,
    tool: Tool::Exec,
    parameters: schema::exec,
    output: Some(schema::run_output),
};

const SHELL_START: ToolSpec = ToolSpec {
    name: "shell_start",
    description: "Start a command line in the background and get its number. At most eight run at once; all end \
                  with this run.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: OF_SHELL,
    execution: ExecutionMode::Sequential,
    ceiling: None,
    path_access: PathAccess::CurrentProject,
    tool: Tool::ShellStart,
    parameters: schema::shell_start,
    output: Some(schema::start_output),
};

const SHELL_POLL: ToolSpec = ToolSpec {
    name: "shell_poll",
    description: "What a background command has printed since the last poll, and whether it still runs.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: Annotations { read_only: true, destructive: false, idempotent: false, open_world: false },
    execution: ExecutionMode::Parallel,
    ceiling: None,
    path_access: PathAccess::None,
    tool: Tool::ShellPoll,
    parameters: schema::background,
    output: Some(schema::background_output),
};

const SHELL_KILL: ToolSpec = ToolSpec {
    name: "shell_kill",
    description: "End a background command and everything it started.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: Annotations { read_only: false, destructive: true, idempotent: true, open_world: false },
    execution: ExecutionMode::Parallel,
    ceiling: None,
    path_access: PathAccess::None,
    tool: Tool::ShellKill,
    parameters: schema::background,
    output: Some(schema::background_output),
};

const READ_FILE: ToolSpec = ToolSpec {
    name: "read_file",
    description: "Read a text file of the project, or some lines of it.",
    group: Group::FileBuiltins,
    category: Category::Files,
    annotations: READS,
    execution: ExecutionMode::Parallel,
    ceiling: None,
    path_access: PathAccess::CurrentProject,
    tool: Tool::ReadFile,
    parameters: schema::read_file,
    output: None,
};

const WRITE_FILE: ToolSpec = ToolSpec {
    name: "write_file",
    description: "Write a whole file of the project, in one step: it is the old file or the new one, never a part.",
    group: Group::FileBuiltins,
    category: Category::Files,
    annotations: Annotations { read_only: false, destructive: true, idempotent: true, open_world: false },
    execution: ExecutionMode::Sequential,
    ceiling: None,
    path_access: PathAccess::CurrentProject,
    tool: Tool::WriteFile,
    parameters: schema::write_file,
    output: None,
};

const LIST_DIR: ToolSpec = ToolSpec {
    name: "list_dir",
    description: "List a folder of the project, one name a line; a folder's name ends with a slash.",
    group: Group::FileBuiltins,
    category: Category::Files,
    annotations: READS,
    execution: ExecutionMode::Parallel,
    ceiling: None,
    path_access: PathAccess::CurrentProject,
    tool: Tool::ListDir,
    parameters: schema::list_dir,
    output: None,
};

const SHELL_CHECK: ToolSpec = ToolSpec {
    name: "shell_check",
    description: "What would happen to a command line: whether it would run at once, a person would be asked, or it would \
                  be denied, and why. Never runs anything.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: READS,
    execution: ExecutionMode::Parallel,
    ceiling: None,
    path_access: PathAccess::CurrentProject,
    tool: Tool::ShellCheck,
    parameters: schema::shell_check,
    output: Some(schema::check_output),
};

const SHELL_READ: ToolSpec = ToolSpec {
    name: "shell_read",
    description: "Run a command line that is known to only read inside the project, in a sandbox in which it can change \
                  nothing. Anything else is refused with the reason, and nobody is asked.",
    group: Group::ShellBuiltins,
    category: Category::Shell,
    annotations: READS,
    execution: ExecutionMode::Parallel,
    ceiling: Some(SHELL_CEILING),
    path_access: PathAccess::CurrentProject,
    tool: Tool::ShellRead,
    parameters: schema::shell,
    output: Some(schema::run_output),
};

/// The shell tool under the name that tells it from [`SHELL_READ`].
const SHELL_RUN: ToolSpec = ToolSpec { name: "shell_run", ..SHELL };

/// Every tool, in the order in which models see them. All are offered in every mode, `read_only` included: the gate
/// decides about each call.
pub static TOOLS: &[ToolSpec] =
    &[SHELL, EXEC, SHELL_START, SHELL_POLL, SHELL_KILL, READ_FILE, WRITE_FILE, LIST_DIR];

/// The tools that the MCP server offers, in order. Its clients have file tools of their own.
pub static SERVED: &[ToolSpec] =
    &[SHELL_CHECK, SHELL_READ, SHELL_RUN, EXEC, SHELL_START, SHELL_POLL, SHELL_KILL];

impl ToolSpec {
    /// The tool of that name.
    ///
    /// ```
    /// use cmdgate_harness::tools::ToolSpec;
    /// let shell = ToolSpec::named("shell").ok_or("there is one")?;
    /// assert!(shell.annotations.destructive && !shell.annotations.read_only);
    /// assert!(ToolSpec::named("launch").is_none());
    /// # Ok::<(), &str>(())
    /// ```
    pub fn named(name: &str) -> Option<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// The JSON Schema of its arguments (2020-12).
    pub fn parameters(&self) -> Value {
        (self.parameters)()
    }

    /// The same with the time limits of a session, which its policy and profile set.
    pub fn parameters_in(&self, session: &Session) -> Value {
        let mut schema = self.parameters();
        let Some(timeout) = schema.pointer_mut("/properties/timeoutMs").and_then(Value::as_object_mut) else {
            return schema;
        };
        let (usual, most) = if self.name == "exec" {
            (session.exec_ceiling(), session.exec_ceiling())
        } else {
            (session.time_limit(&Action::Shell(String::new()), None), session.shell_ceiling())
        };
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        timeout.insert("maximum".to_owned(), milliseconds(most).into());
        timeout.insert("default".to_owned(), milliseconds(usual).into());
        let what = if self.name == "exec" { "program" } else { "command" };
        timeout.insert("description".to_owned(), format!("Time for the {what} in milliseconds").into());
        schema
    }

    /// The JSON Schema (2020-12) of [`ToolReply::structured`], where a reply holds more than text.
    pub fn output(&self) -> Option<Value> {
        self.output.map(|output| output())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S2
    #[test]
    fn the_shell_tool_is_described_as_the_contract_says() {
        let shell = ToolSpec::named("shell").unwrap();
        assert_eq!(shell.group.as_str(), "shell_builtins");
        assert_eq!(shell.category.as_str(), "shell");
        assert_eq!(
            shell.annotations,
            Annotations { read_only: false, destructive: true, idempotent: false, open_world: true }
        );
        assert_eq!(shell.execution.as_str(), "sequential");
        assert_eq!(shell.ceiling, Some(Duration::from_mins(1)));
        assert_eq!(shell.path_access.as_str(), "current_project");
    }

    // contract: S1 S2
    #[test]
    fn every_tool_has_a_name_of_its_own_and_a_closed_schema() {
        for tools in [TOOLS, SERVED] {
            for (at, tool) in tools.iter().enumerate() {
                assert!(tools[..at].iter().all(|other| other.name != tool.name), "{}", tool.name);
            }
        }
        for tool in TOOLS.iter().chain(SERVED) {
            let schema = tool.parameters();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            for required in schema["required"].as_array().unwrap() {
                assert!(schema["properties"].get(required.as_str().unwrap()).is_some(), "{}", tool.name);
            }
        }
        let timeout = &ToolSpec::named("shell").unwrap().parameters()["properties"]["timeoutMs"];
        assert_eq!((&timeout["minimum"], &timeout["maximum"]), (&1000.into(), &60_000.into()));
    }
}
