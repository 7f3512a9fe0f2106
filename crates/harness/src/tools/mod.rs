//! The tools that a model is given: what each is, what its arguments are, and what a call of it does.
//!
//! One table, [`TOOLS`], is read by the run loop and by the providers. A call goes through
//! [`Toolbox::call`], which checks the arguments, lets the gate decide, and records what was decided and what came of it.

mod arguments;
mod background;
mod call;
mod files;
mod permission;
mod schema;

pub use call::{ToolReply, Toolbox};
pub(crate) use files::read_approved;
pub use permission::{Permission, PermissionSource, compose};

use crate::session::SHELL_CEILING;
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

/// Every tool, in the order in which models see them. All are offered in every mode, `read_only` included: the gate
/// decides about each call.
pub static TOOLS: &[ToolSpec] = &[
    ToolSpec {
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
    },
    ToolSpec {
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
    },
    ToolSpec {
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
    },
    ToolSpec {
        name: "shell_poll",
        description: "What a background command has printed since the last poll, and whether it still runs.",
        group: Group::ShellBuiltins,
        category: Category::Shell,
        annotations: Annotations {
            read_only: true,
            destructive: false,
            idempotent: false,
            open_world: false,
        },
        execution: ExecutionMode::Sequential,
        ceiling: None,
        path_access: PathAccess::None,
        tool: Tool::ShellPoll,
        parameters: schema::background,
    },
    ToolSpec {
        name: "shell_kill",
        description: "End a background command and everything it started.",
        group: Group::ShellBuiltins,
        category: Category::Shell,
        annotations: Annotations { read_only: false, destructive: true, idempotent: true, open_world: false },
        execution: ExecutionMode::Sequential,
        ceiling: None,
        path_access: PathAccess::None,
        tool: Tool::ShellKill,
        parameters: schema::background,
    },
    ToolSpec {
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
    },
    ToolSpec {
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
    },
    ToolSpec {
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
    },
];

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
        for (at, tool) in TOOLS.iter().enumerate() {
            assert!(TOOLS[..at].iter().all(|other| other.name != tool.name), "{}", tool.name);
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
