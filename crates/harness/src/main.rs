//! The `harness` program.
fn main() -> std::process::ExitCode {
    cmdgate_harness::cli::main()
}
