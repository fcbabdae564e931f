// What the authors' agents measure, the inputs that they make of it, and what they do with an output. Each
// section names the authors' file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace quicgym::policy {

// ---- Aurora (Jay et al., ICML 2019): PCC-RL, common/sender_obs.py ----

struct AuroraInterval {
    double sent_bytes = 0.0;
    double acked_bytes = 0.0;
    double unmatched_bytes = 0.0;  // one packet: what begins the time in which the rest was acknowledged
    double send_seconds = 0.0;
    double receive_seconds = 0.0;
    double rtt_samples = 0.0;
    double first_half_rtt = 0.0;  // the mean of the first half of the samples, seconds
    double second_half_rtt = 0.0;
    double mean_rtt() const;
};

class AuroraFeatures {
public:
    static constexpr std::size_t kFrames = 10;
    static constexpr std::array<double, 3> kMissing = {0.0, 1.0, 1.0};

    // Sent latency inflation, latency ratio, send ratio.
    std::array<double, 3> of(const AuroraInterval& interval);

private:
    double lowest_mean_rtt_ = 0.0;  // of the connection's intervals; 0: none known
};

inline constexpr double kAuroraTrainedStep = 0.025;   // PCC-RL, config.py
inline constexpr double kAuroraPublishedStep = 0.05;  // PCC-RL, loaded_client.py
double aurora_rate(double rate, double output, double step);

// ---- Orca (Abbasloo et al., SIGCOMM 2020): rl-module/envwrapper.py ----

struct OrcaPeriod {
    double throughput;   // bytes per second
    double pacing_rate;  // bytes per second
    double lost_rate;    // bytes per second
    double rtt_samples;
    double window_packets;
    double seconds;  // of the period
    double min_rtt;  // in one unit with the next
    double smoothed_rtt;
};

class OrcaFeatures {
public:
    static constexpr std::size_t kFrames = 10;

    std::array<double, 7> of(const OrcaPeriod& period);

private:
    double max_throughput_ = 0.0;  // never forgotten
};

std::uint64_t orca_window(std::uint64_t packets, double output);

// ---- Astraea (Liao et al., EuroSys 2024): python/agent/definitions.py ----

struct AstraeaPeriod {
    double throughput;    // bytes per second
    double mean_rtt;      // seconds; 0: no sample
    double min_rtt;       // seconds; 0: none yet
    double smoothed_rtt;  // seconds
    double window_packets;
    double lost_rate;  // bytes per second
    double packets_out;
    double pacing_rate;            // bytes per second
    double retransmitted_packets;  // of those out
};

class AstraeaFeatures {
public:
    static constexpr std::size_t kFrames = 5;

    std::array<double, 10> of(const AstraeaPeriod& period);

private:
    double max_throughput_ = 0.0;  // never forgotten
};

std::uint64_t astraea_window(std::uint64_t packets, double output);

// ---- Indigo (Yan et al., USENIX ATC 2018): env/sender.py ----

struct IndigoAck {
    std::int64_t now_ms;
    std::int64_t rtt_ms;
    double delivered_bytes;     // since the acknowledged packet was sent
    std::int64_t delivered_ms;  // the time in which they were delivered
    double sent_bytes;          // since the acknowledged packet was sent, itself included
    double packets;             // acknowledged by one ACK frame, each of which counts as a sample
};

class IndigoFeatures {
public:
    static constexpr std::size_t kActions = 5;

    // Queueing delay in ms, delivery rate and sending rate in Mbps, where a decision is due; they are
    // forgotten then.
    std::optional<std::array<double, 3>> on_ack(const IndigoAck& ack);

private:
    std::int64_t min_rtt_ms_ = INT64_MAX;  // of the connection
    std::int64_t step_start_ms_ = -1;      // before the first acknowledgement
    bool is_empty_ = true;
    std::array<double, 3> means_{};
};

double indigo_window(double packets, std::size_t action);

}  // namespace quicgym::policy
