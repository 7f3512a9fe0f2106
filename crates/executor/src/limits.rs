//! Bounds on what a command may use.

/// Bounds on what a command may use. `None` leaves a bound as the system has it.
///
/// The wall clock is not here: it belongs to the job ([`crate::Job::timeout`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Processes and threads of the whole tree. Default 4096. For root, and without a sandbox, this holds only in a
    /// control group: see [`Limits::group`].
    pub processes: Option<u64>,
    /// Open files per process (`RLIMIT_NOFILE`). Default: the system's.
    pub open_files: Option<u64>,
    /// Bytes of the largest file that may be written (`RLIMIT_FSIZE`). Default 16 GiB.
    pub file_size: Option<u64>,
    /// Bytes of the data segment per process (`RLIMIT_DATA`). Default: none, because it ends programs that reserve much.
    pub data: Option<u64>,
    /// Seconds of processor time per process (`RLIMIT_CPU`). Default: none.
    pub cpu_seconds: Option<u64>,
    /// Bytes of memory of the whole tree; needs a control group. Default: none.
    pub memory: Option<u64>,
    /// Bytes of `/dev/shm`. Default 512 MiB.
    pub shared_memory: u64,
    /// Whether each command gets a control group of its own, where one can be made: it bounds processes also for root,
    /// and ends everything at once also without a sandbox. Default false, because moving a process into a group waits
    /// for the kernel (a grace period of RCU): 4 to 28 ms were measured, as much as the sandbox itself or more. A bound
    /// on memory asks for it by itself.
    pub group: bool,
    /// Whether a bound that cannot be put in force refuses the run rather than being reported as unenforced.
    pub required: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: Some(4096),
            open_files: None,
            file_size: Some(16 << 30),
            data: None,
            cpu_seconds: None,
            memory: None,
            shared_memory: 512 << 20,
            group: false,
            required: false,
        }
    }
}

/// A bound by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// [`Limits::processes`].
    Processes,
    /// [`Limits::open_files`].
    OpenFiles,
    /// [`Limits::file_size`].
    FileSize,
    /// [`Limits::data`].
    Data,
    /// [`Limits::cpu_seconds`].
    CpuSeconds,
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::shared_memory`].
    SharedMemory,
    /// No core files, always.
    CoreFiles,
    /// No process of the command goes on when this one is ended by SIGKILL, always. Named only where that is not sure.
    EndsWithCaller,
}

impl LimitKind {
    /// A stable, lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::OpenFiles => "open_files",
            Self::FileSize => "file_size",
            Self::Data => "data",
            Self::CpuSeconds => "cpu_seconds",
            Self::Memory => "memory",
            Self::SharedMemory => "shared_memory",
            Self::CoreFiles => "core_files",
            Self::EndsWithCaller => "ends_with_caller",
        }
    }
}

/// Whether a bound holds, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// A control group bounds the whole tree.
    ControlGroup,
    /// A resource limit bounds each process (for processes: the whole user namespace).
    ResourceLimit,
    /// The size of a file system in memory.
    Mount,
    /// It does not hold, for this reason.
    Unenforced(String),
}

/// One bound that was asked for, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitStatus {
    /// Which bound.
    pub kind: LimitKind,
    /// Its value, in the unit of the field of [`Limits`].
    pub value: u64,
    /// Whether it holds.
    pub holds: Holds,
}
