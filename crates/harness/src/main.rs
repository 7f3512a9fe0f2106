//! The `harness` program.
fn main() -> std::process::ExitCode {
    // Each sandboxed command leaves an orphan, and process 1 of many containers never takes one out of the process table.
    // Where this is refused they stay there, and nothing else comes of it.
    let _ = cmdgate_executor::adopt_orphans();
    cmdgate_harness::cli::main()
}
