//! Makes metrics and registers them.
//!
//! Names and labels are constants of the files beside this one, so a failure
//! is a mistake in them: it panics, and any test that makes the metrics meets it.

use std::collections::HashMap;

use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// Names and values of labels that never change.
pub(super) type Fixed<'a> = &'a [(&'a str, &'a str)];

/// Makes metrics in its registry.
pub(super) struct Make {
    pub(super) registry: Registry,
}

impl Make {
    pub(super) fn new() -> Self {
        Self { registry: Registry::new() }
    }

    pub(super) fn register(&self, collector: Box<dyn Collector>) {
        if let Err(error) = self.registry.register(collector) {
            panic!("two metrics have one name: {error}");
        }
    }

    pub(super) fn counter(&self, name: &str, help: &str, labels: Fixed<'_>) -> IntCounter {
        self.registered(IntCounter::with_opts(options(name, help, labels)))
    }

    pub(super) fn gauge(&self, name: &str, help: &str, labels: Fixed<'_>) -> IntGauge {
        self.registered(IntGauge::with_opts(options(name, help, labels)))
    }

    pub(super) fn float(&self, name: &str, help: &str, labels: Fixed<'_>) -> Gauge {
        self.registered(Gauge::with_opts(options(name, help, labels)))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, labels: Fixed<'_>, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts { common_opts: options(name, help, labels), buckets: buckets.to_vec() };
        self.registered(Histogram::with_opts(options))
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.registered(IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.registered(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn floats(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        self.registered(GaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> HistogramVec {
        self.registered(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
    }

    fn registered<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        match metric {
            Ok(metric) => {
                self.register(Box::new(metric.clone()));
                metric
            }
            Err(error) => panic!("a metric has a wrong name or label: {error}"),
        }
    }
}

fn options(name: &str, help: &str, labels: Fixed<'_>) -> Opts {
    let labels: HashMap<String, String> =
        labels.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Opts::new(name, help).const_labels(labels)
}

/// A number of things as a gauge has it.
pub(super) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
