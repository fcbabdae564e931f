// A BPF program that is a congestion controller of the kernel's TCP: loading, registration, shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct bpf_map;
struct bpf_object;

namespace quicgym::linux_tcp {

// A file descriptor that is closed with its owner.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept;
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor() { reset(); }
    int number() const { return number_; }
    void reset();

private:
    int number_ = -1;
};

// Memory that a program's map shares with this process.
class SharedMemory {
public:
    SharedMemory(int map, std::size_t bytes);
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    ~SharedMemory();
    void* data() const { return data_; }

private:
    void* data_;
    std::size_t bytes_;
};

// Names of a program's `const volatile` variables, and their values: several for an array.
using Constants = std::map<std::string, std::vector<std::int64_t>>;

// The program is registered from construction to destruction. The kernel ends the registration by itself when
// the process ends, however that happens: the registration is a BPF link, which only this process has.
// Connections that have begun with the program keep it to their end.
//
// Errors are std::system_error, whose text has what libbpf and the verifier say, or std::invalid_argument for
// an object that does not have what is asked for.
class Program {
public:
    // `object` is an ELF file's content. `name` has at most 15 characters, is the name for TCP_CONGESTION,
    // and must be free. `contents` are bytes for the maps of these names, of which each has one element.
    Program(std::string object, const std::string& name, const Constants& constants,
            const std::map<std::string, std::string>& contents);
    ~Program();

    // Ends the registration; the rest goes with the object.
    void close() { link_.reset(); }

    int map(const char* name) const;
    std::size_t map_bytes(const char* name) const;
    // How many instructions the verifier has followed, of the hook for which these were the most. It refuses
    // a million.
    std::uint32_t verified_instructions() const { return verified_instructions_; }

private:
    struct CloseObject {
        void operator()(bpf_object* object) const;
    };

    bpf_map* find_map(const char* name) const;

    std::unique_ptr<bpf_object, CloseObject> object_;
    Descriptor link_;
    std::uint32_t verified_instructions_ = 0;
};

}  // namespace quicgym::linux_tcp
