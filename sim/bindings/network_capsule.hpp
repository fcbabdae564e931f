// real/embedding/quicgym/network.h over a network of Python's: other languages send packets through it
// without Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "real/embedding/quicgym/network.h"
#include "sim/net/emulation.hpp"

namespace quicgym::bindings {

// `Network` has send(), which checks its arguments, and the EmulatedNetwork network().
template <class Network>
class NetworkCapsule {
public:
    // The capsule keeps `owner`, the Python object that has the network.
    static nanobind::capsule make(nanobind::object owner, Network& network) {
        auto* const self = new NetworkCapsule(std::move(owner), network);
        return nanobind::capsule(&self->interface_, QUICGYM_NETWORK_CAPSULE, [](void* pointer) noexcept {
            delete of(static_cast<quicgym_network_interface_t*>(pointer)->network);
        });
    }

private:
    NetworkCapsule(nanobind::object owner, Network& network) : owner_(std::move(owner)), network_(network) {
        interface_.api_version = QUICGYM_NETWORK_API_VERSION;
        interface_.path_count = static_cast<std::uint32_t>(network.network().path_count());
        interface_.network = reinterpret_cast<quicgym_network*>(this);
        interface_.send = &NetworkCapsule::send;
        interface_.advance = &NetworkCapsule::advance;
        interface_.next_event = [](const quicgym_network* self) noexcept {
            return of(self)->network_.network().next_event();
        };
        interface_.last_error = [](const quicgym_network* self) noexcept { return of(self)->error_.c_str(); };
    }

    static NetworkCapsule* of(quicgym_network* network) { return reinterpret_cast<NetworkCapsule*>(network); }
    static const NetworkCapsule* of(const quicgym_network* network) {
        return reinterpret_cast<const NetworkCapsule*>(network);
    }

    template <class Work>
    std::int64_t guarded(Work work) noexcept {
        try {
            return work();
        } catch (const std::exception& error) {
            try {
                error_ = error.what();
            } catch (...) {
                error_.clear();
            }
        }
        return -1;
    }

    static std::int64_t send(quicgym_network* self, std::uint64_t id, std::int64_t time, std::uint32_t path,
                             int backward, std::uint32_t wire_bytes, int ecn) noexcept {
        return of(self)->guarded([&] {
            const auto way = backward != 0 ? DataDirection::backward : DataDirection::forward;
            return of(self)->network_.send(id, time, path, way, wire_bytes, ecn);
        });
    }

    static std::int64_t advance(quicgym_network* self, std::int64_t end,
                                const quicgym_outcome_t** outcomes) noexcept {
        return of(self)->guarded([&] {
            std::vector<quicgym_outcome_t>& told = of(self)->outcomes_;
            told.clear();
            for (const net::EmulatedNetwork::Outcome& outcome : of(self)->network_.network().advance(end)) {
                told.push_back({outcome.id, outcome.time, outcome.path,
                                static_cast<std::uint8_t>(outcome.way == DataDirection::backward),
                                static_cast<std::uint8_t>(outcome.fate),
                                static_cast<std::uint8_t>(outcome.ecn), 0});
            }
            *outcomes = told.data();
            return static_cast<std::int64_t>(told.size());
        });
    }

    static_assert(static_cast<int>(net::Fate::delivered) == QUICGYM_DELIVERED &&
                  static_cast<int>(net::Fate::dropped) == QUICGYM_DROPPED &&
                  static_cast<int>(net::Fate::lost) == QUICGYM_LOST &&
                  static_cast<int>(net::Fate::held) == QUICGYM_HELD);
    static_assert(kLinkBytes == QUICGYM_WIRE_OVERHEAD);

    nanobind::object owner_;
    Network& network_;
    quicgym_network_interface_t interface_{};
    std::vector<quicgym_outcome_t> outcomes_;
    std::string error_;
};

}  // namespace quicgym::bindings
