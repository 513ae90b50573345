//! CPU, memory, files and threads of this process, as the kernel tells in `/proc`.
//!
//! The names are those of every Prometheus client. The collector of the
//! `prometheus` crate counts CPU time in whole seconds, in which an operator
//! that uses a few milliseconds a second cannot be seen; this one has the
//! kernel's 10 ms. Where there is no `/proc`, there are no series.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, Metric, MetricFamily, MetricType};

/// Clock ticks a second in what the kernel shows to programs (`USER_HZ`): 100
/// on every architecture that Rust has Linux for.
const TICKS: f64 = 100.0;

const CPU: &str = "process_cpu_seconds_total";
const OPEN_FILES: &str = "process_open_fds";
const MAX_FILES: &str = "process_max_fds";
const VIRTUAL: &str = "process_virtual_memory_bytes";
const RESIDENT: &str = "process_resident_memory_bytes";
const START: &str = "process_start_time_seconds";
const THREADS: &str = "process_threads";

const HELP: [(&str, &str); 7] = [
    (CPU, "CPU time of the process, in user mode and in the kernel."),
    (OPEN_FILES, "Files and sockets the process has open."),
    (MAX_FILES, "Files and sockets the process may have open."),
    (VIRTUAL, "Virtual memory of the process."),
    (RESIDENT, "Memory of the process that is in RAM."),
    (START, "When the process started, in seconds since 1970."),
    (THREADS, "Threads of the process."),
];

/// Reads the numbers at each scrape.
pub(super) struct Process {
    proc: PathBuf,
    descriptions: Vec<Desc>,
    /// When the machine started, in seconds since 1970.
    boot: Option<f64>,
}

impl Process {
    pub(super) fn new() -> Self {
        Self::of(Path::new("/proc"))
    }

    fn of(proc: &Path) -> Self {
        let describe = |(name, help): (&str, &str)| match Desc::new(
            name.to_owned(),
            help.to_owned(),
            Vec::new(),
            HashMap::new(),
        ) {
            Ok(description) => description,
            Err(error) => panic!("a metric has a wrong name: {error}"),
        };
        Self {
            proc: proc.to_owned(),
            descriptions: HELP.map(describe).into(),
            boot: fs::read_to_string(proc.join("stat")).ok().and_then(|stat| value(&stat, "btime")),
        }
    }

    /// Those that can be read.
    fn numbers(&self) -> Vec<(&'static str, f64)> {
        let own = self.proc.join("self");
        let read = |name: &str| fs::read_to_string(own.join(name)).unwrap_or_default();
        let (stat, status, limits) = (read("stat"), read("status"), read("limits"));
        let kibibytes = |name| value(&status, name).map(|kb| kb * 1024.0);
        let start = field(&stat, 22).zip(self.boot).map(|(ticks, boot)| boot + ticks / TICKS);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let open = fs::read_dir(own.join("fd")).ok().map(|files| files.count() as f64);
        [
            (CPU, field(&stat, 14).zip(field(&stat, 15)).map(|(user, system)| (user + system) / TICKS)),
            (OPEN_FILES, open),
            (MAX_FILES, value(&limits, "Max open files")),
            (VIRTUAL, kibibytes("VmSize:")),
            (RESIDENT, kibibytes("VmRSS:")),
            (START, start),
            (THREADS, value(&status, "Threads:")),
        ]
        .into_iter()
        .filter_map(|(name, number)| Some((name, number?)))
        .collect()
    }
}

impl Collector for Process {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let family = |(name, number): (&str, f64)| {
            let mut metric = Metric::default();
            let mut family = MetricFamily::default();
            if name == CPU {
                let mut counter = Counter::default();
                counter.set_value(number);
                metric.set_counter(counter);
                family.set_field_type(MetricType::COUNTER);
            } else {
                let mut gauge = Gauge::default();
                gauge.set_value(number);
                metric.set_gauge(gauge);
                family.set_field_type(MetricType::GAUGE);
            }
            let help = HELP.iter().find(|(of, _)| *of == name).map_or("", |(_, help)| help);
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_metric(vec![metric]);
            family
        };
        self.numbers().into_iter().map(family).collect()
    }
}

/// The field of this number in `/proc/self/stat`, as proc(5) counts them. The
/// second is the program's name in parentheses, which may hold anything.
fn field(stat: &str, number: usize) -> Option<f64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(number - 3)?.parse().ok()
}

/// The first number in the line that begins with this name.
fn value(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_all_seven_numbers() {
        let numbers: HashMap<_, _> = Process::new().numbers().into_iter().collect();
        assert_eq!(numbers.len(), HELP.len(), "{numbers:?}");
        assert!(numbers[RESIDENT] > 1e6 && numbers[RESIDENT] < numbers[VIRTUAL], "{numbers:?}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        // The machine's clock may have been set since it started.
        assert!((now - numbers[START]).abs() < 86_400.0, "{numbers:?} at {now}");
    }

    #[test]
    fn a_program_may_have_any_name() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 4 18 900 20";
        assert_eq!(field(stat, 14), Some(250.0));
        assert_eq!(field(stat, 15), Some(50.0));
        assert_eq!(field(stat, 22), Some(900.0));
        assert_eq!(field(stat, 52), None);
    }

    #[test]
    fn what_cannot_be_read_has_no_series() {
        let process = Process::of(Path::new("/nowhere"));
        assert!(process.collect().is_empty());
        assert_eq!(
            value("Max open files            unlimited            unlimited files", "Max open files"),
            None
        );
    }
}
