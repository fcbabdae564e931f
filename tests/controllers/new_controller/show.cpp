// Prints what the catalogue says, for test_new_controller.py; an argument names a mistake to make first.
#include <iostream>
#include <stdexcept>
#include <string>

#include "controllers/catalogue.hpp"
#include "controllers/newreno.hpp"
#include "controllers/registration.hpp"

namespace {

using namespace quicgym;

ControllerSpecification another() {
    ControllerSpecification specification = newreno_specification();
    specification.name = "another";
    return specification;
}

void print(const char* title, const std::vector<std::string>& names) {
    std::cout << title << ":";
    for (const auto& name : names) std::cout << " " << name;
    std::cout << "\n";
}

}  // namespace

int main(int count, char** arguments) {
    const std::string mistake = count > 1 ? arguments[1] : "";
    if (mistake == "taken name") Registration again(newreno_specification);
    if (mistake == "taken place") Registration again(another, {.switching_place = 1});
    if (mistake == "place after a gap") Registration again(another, {.switching_place = 4});
    try {
        std::vector<std::string> names;
        for (const auto& [specification, listing] : catalogue()) names.push_back(specification.name);
        print("catalogue", names);
        print("baselines", baselines());
        print("members", switching_members());
        for (const auto& name : names) {
            const auto made = make_controller(name, {}, 1200);
            std::cout << name << ": " << made->window_bytes() << "\n";
        }
    } catch (const std::logic_error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
