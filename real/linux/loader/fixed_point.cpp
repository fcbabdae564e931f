#include "loader/fixed_point.hpp"

#include <linux/types.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "bpf/network.h"
#include "bpf/observation.h"

namespace quicgym::linux_tcp {

std::vector<std::int32_t> observe(bool is_recent, std::uint64_t datagram_bytes,
                                  const std::vector<std::vector<std::uint64_t>>& states) {
    const auto observer = std::make_unique<struct observer>();
    bool is_first = true;
    for (const std::vector<std::uint64_t>& members : states) {
        if (members.size() != 14) throw std::invalid_argument("a state has 14 members");
        flow_state state{};
        std::memcpy(&state, members.data(), 13 * sizeof(std::uint64_t));
        state.mode = static_cast<std::uint32_t>(members[13]);
        if (is_first) observer_start(observer.get(), &state);
        else observer_update(observer.get(), &state, datagram_bytes);
        is_first = false;
    }
    begin_search(observer.get(), datagram_bytes);
    for (std::uint32_t age = 0; age < known_intervals(observer.get()); ++age) {
        if (!search_interval(observer.get(), age, is_recent)) break;
    }
    end_search(observer.get());
    const std::uint64_t bdp = path_bdp(observer.get(), datagram_bytes);
    std::vector<std::int32_t> result(SPANS * SPAN_FEATURES + RECENT_STATE_FEATURES + MODES);
    for (std::uint32_t span = 0; span < SPANS; ++span)
        write_span(observer.get(), span, bdp, datagram_bytes, result.data() + span * SPAN_FEATURES);
    const std::uint32_t rest =
        write_state(observer.get(), is_recent, bdp, datagram_bytes, result.data() + SPANS * SPAN_FEATURES);
    result.resize(SPANS * SPAN_FEATURES + rest);
    return result;
}

std::vector<std::int32_t> compute(const std::string& network,
                                  const std::vector<std::vector<std::uint32_t>>& layers,
                                  const std::vector<std::int32_t>& inputs) {
    if (network.size() != sizeof(struct network)) throw std::invalid_argument("the network has another size");
    if (layers.empty() || layers.size() > MOST_LAYERS || inputs.size() > MOST_WIDTH)
        throw std::invalid_argument("the network has another shape");
    const auto weights = std::make_unique<struct network>();
    std::memcpy(static_cast<void*>(weights.get()), network.data(), network.size());
    std::vector<std::int32_t> values(2 * MOST_WIDTH);
    std::copy(inputs.begin(), inputs.end(), values.begin());
    for (std::uint32_t number = 0; number < layers.size(); ++number) {
        const std::vector<std::uint32_t>& members = layers[number];
        if (members.size() != 6) throw std::invalid_argument("a layer has 6 members");
        const layer one{members[0], members[1], members[2], members[3], members[4], members[5]};
        for (std::uint32_t row = 0; row < one.outputs; ++row) {
            if (!compute_output(weights.get(), values.data(), &one, number, row))
                throw std::invalid_argument("a layer is too large");
        }
    }
    const auto first = values.begin() + (layers.size() & 1) * MOST_WIDTH;
    return {first, first + layers.back()[1]};
}

}  // namespace quicgym::linux_tcp
