//! What a process has used so far, from `/proc`.

use std::fs;

/// Clock ticks per second in `/proc`, which is part of Linux's interface on every architecture that Rust knows.
const TICKS: f64 = 100.0;

/// Processor time in seconds, of all threads, also of those that have ended; 0 for a process that is gone.
pub(crate) fn cpu_seconds(id: u32) -> f64 {
    let Ok(text) = fs::read_to_string(format!("/proc/{id}/stat")) else { return 0.0 };
    // The name stands in parentheses and may hold anything.
    let Some((_, fields)) = text.rsplit_once(')') else { return 0.0 };
    let ticks = |field: &&str| field.parse::<f64>().unwrap_or_default();
    fields.split_whitespace().collect::<Vec<_>>().iter().skip(11).take(2).map(ticks).sum::<f64>() / TICKS
}

/// Memory in KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// What is resident now.
    pub(crate) resident: f64,
    /// The most that was resident since the process started.
    pub(crate) peak: f64,
}

/// The memory of a process; 0 for one that is gone.
pub(crate) fn memory(id: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
    };
    Memory { resident: field("VmRSS:"), peak: field("VmHWM:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let began = std::time::Instant::now();
        while cpu_seconds(std::process::id()) == 0.0 {
            assert!(began.elapsed().as_secs() < 10);
        }
        let memory = memory(std::process::id());
        assert!(memory.resident > 100.0 && memory.peak >= memory.resident, "{memory:?}");
        assert!(cpu_seconds(u32::MAX) == 0.0 && super::memory(u32::MAX).peak == 0.0);
    }
}
