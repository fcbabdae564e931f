// sim/policy for Python: the network of a learned policy.
#include "sim/policy/policy.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controllers/plugin.hpp"
#include "sim/bindings/modules.hpp"
#include "sim/policy/authors/agent.hpp"
#include "sim/policy/network.hpp"
#include "sim/policy/safetensors.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

using Weights = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Observations = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

policy::Tensors to_tensors(const std::map<std::string, Weights>& arrays) {
    std::map<std::string, policy::Tensor> tensors;
    for (const auto& [name, array] : arrays) {
        policy::Tensor& tensor = tensors[name];
        for (std::size_t i = 0; i < array.ndim(); ++i) tensor.shape.push_back(array.shape(i));
        tensor.values.assign(array.data(), array.data() + array.size());
    }
    return policy::Tensors(std::move(tensors));
}

// A new array that owns its numbers.
template <class Element>
nb::object to_array(std::vector<Element> values, const std::vector<std::size_t>& shape) {
    auto kept = std::make_unique<std::vector<Element>>(std::move(values));
    Element* const data = kept->data();
    nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<std::vector<Element>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, Element>(data, shape.size(), shape.data(), owner));
}

template <class Element>
nb::object act_as(const policy::Network& network, const Observations& observations, std::size_t width,
                  void (*take)(const std::vector<float>& values, Element* out)) {
    const std::size_t rows = observations.shape(0);
    std::vector<Element> actions(rows * width);
    {
        const nb::gil_scoped_release released;
        thread_local policy::Scratch scratch;  // keeps its memory from call to call
        for (std::size_t row = 0; row < rows; ++row) {
            network.compute(observations.data() + row * observations.shape(1), scratch);
            take(scratch.values, actions.data() + row * width);
        }
    }
    return network.chooses() ? to_array(std::move(actions), {rows})
                             : to_array(std::move(actions), {rows, width});
}

nb::object act(const policy::Network& network, const Observations& observations) {
    const std::size_t size = network.architecture().observation_size;
    if (network.is_recurrent())
        throw std::invalid_argument("the network has a state for each flow; call unroll");
    if (observations.shape(1) != size) {
        throw std::invalid_argument("an observation has " + std::to_string(size) + " numbers, not " +
                                    std::to_string(observations.shape(1)));
    }
    if (network.chooses()) {
        return act_as<std::int64_t>(
            network, observations, 1, [](const std::vector<float>& values, std::int64_t* out) {
                *out = std::max_element(values.begin(), values.end()) - values.begin();
            });
    }
    return act_as<float>(
        network, observations, network.architecture().outputs,
        [](const std::vector<float>& values, float* out) { std::copy(values.begin(), values.end(), out); });
}

// The outputs for successive observations of one flow, and the state after them.
nb::tuple unroll(const policy::Network& network, const Observations& observations, std::vector<float> state) {
    const std::size_t rows = observations.shape(0), size = network.architecture().observation_size;
    if (observations.shape(1) != size)
        throw std::invalid_argument("an observation has " + std::to_string(size) + " numbers");
    policy::Scratch scratch;
    scratch.state = std::move(state);
    std::vector<float> values;
    for (std::size_t row = 0; row < rows; ++row) {
        network.compute(observations.data() + row * size, scratch);
        values.insert(values.end(), scratch.values.begin(), scratch.values.end());
    }
    const std::size_t width = network.architecture().outputs, states = scratch.state.size();
    return nb::make_tuple(to_array(std::move(values), {rows, width}),
                          to_array(std::move(scratch.state), {states}));
}

// An agent of other authors as a controller that somebody else's module brings (plugin_controller.cpp).
nb::capsule load_agent(const std::string& path) {
    policy::Policy policy = policy::load_policy(path);
    if (!policy.agent) {
        throw std::invalid_argument(path +
                                    ": is a policy of an environment, not a controller; name it where "
                                    "a policy is asked for, as in quicgym evaluate");
    }
    auto owned = std::make_unique<ControllerSpecification>(std::move(*policy.agent));
    nb::capsule capsule(owned.get(), kControllerCapsule, [](void* specification) noexcept {
        delete static_cast<ControllerSpecification*>(specification);
    });
    owned.release();
    return capsule;
}

nb::dict read_safetensors(const nb::bytes& data) {
    nb::dict arrays;
    for (auto& [name, tensor] :
         policy::read_safetensors({static_cast<const char*>(data.data()), data.size()})) {
        arrays[name.c_str()] = to_array(std::move(tensor.values), tensor.shape);
    }
    return arrays;
}

}  // namespace

void bind_policy(nb::module_& module) {
    nb::class_<policy::Network>(module, "PolicyNetwork",
                                "The network of a learned policy, without PyTorch: see "
                                "quicgym.agents.policies.networks.Actor.")
        .def(
            "__init__",
            [](policy::Network* self, const std::vector<std::size_t>& extractor_sizes,
               const std::vector<std::size_t>& hidden_sizes, const std::string& activation,
               const std::string& output, std::size_t observation_size, std::size_t outputs,
               const std::map<std::string, Weights>& tensors, std::size_t lstm_size) {
                new (self) policy::Network(
                    {lstm_size, extractor_sizes, hidden_sizes, activation, output, observation_size, outputs},
                    to_tensors(tensors));
            },
            nb::arg("extractor_sizes"), nb::arg("hidden_sizes"), nb::arg("activation"), nb::arg("output"),
            nb::arg("observation_size"), nb::arg("outputs"), nb::arg("tensors"), nb::arg("lstm_size") = 0)
        .def("__call__", &act, nb::arg("observations"),
             "Maps (rows, observation_size) to (rows, outputs) coordinates, or to (rows,) choices.")
        .def("unroll", &unroll, nb::arg("observations"), nb::arg("state") = std::vector<float>(),
             "Maps successive observations of one flow to (outputs of the last layer, state). A state is an "
             "LSTM's output and cell; empty: zeros.");
    module.def(
        "load_agent", &load_agent, nb::arg("path"),
        "The controller of an agent of other authors, by the path of its description, as a capsule for "
        "describe_plugin.");
    module.def("agent_features", &policy::agent_features, nb::arg("agent"), nb::arg("rows"),
               "The inputs that an agent of other authors makes of a connection's measurements, row by row.");
    module.def("agent_decision", &policy::agent_decision, nb::arg("agent"), nb::arg("before"),
               nb::arg("output"), "The rate or window after an output of the agent's network.");
    module.def(
        "check_policy_description",
        [](const nb::bytes& text) {
            policy::read_description({static_cast<const char*>(text.data()), text.size()});
        },
        nb::arg("text"),
        "Raises ValueError, with field, value and remedy, for a policy's description that cannot be.");
    module.def(
        "check_policy_fit",
        [](const std::string& output, const std::string& action_space, const std::string& environment) {
            policy::Architecture architecture;
            architecture.output = output;
            policy::check_fit(architecture, environment::find_action_space(action_space), environment);
        },
        nb::arg("output"), nb::arg("action_space"), nb::arg("environment"),
        "Raises ValueError for a network that cannot act in an environment.");
    module.def("read_safetensors", &read_safetensors, nb::arg("data"),
               "The tensors of a safetensors file, all of float32, by name.");
}

}  // namespace quicgym::bindings
