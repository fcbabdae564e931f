// Prints what the catalogue says, for test_new_controller.py; an argument names a mistake to make first.
#include <iostream>
#include <stdexcept>
#include <string>

#include "controllers/catalogue.hpp"
#include "controllers/newreno.hpp"
#include "controllers/registration.hpp"

namespace {

using namespace quicgym;

void print(const char* title, const std::vector<std::string>& names) {
    std::cout << title << ":";
    for (const auto& name : names) std::cout << " " << name;
    std::cout << "\n";
}

}  // namespace

int main(int count, char** arguments) {
    const std::string mistake = count > 1 ? arguments[1] : "";
    if (mistake == "taken name") Registration again(newreno_specification);
    try {
        std::vector<std::string> names;
        for (const auto& [specification, listing] : catalogue()) names.push_back(specification.name);
        print("catalogue", names);
        print("baselines", baselines());
        for (const auto& name : names) {
            const auto made = make_controller(name, {}, 1200);
            std::cout << name << ": " << made->window_bytes() << "\n";
        }
    } catch (const std::logic_error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
