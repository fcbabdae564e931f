#include "loader/program.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace quicgym::linux_tcp {

namespace {

// <linux/bpf.h> has this since Linux 6.4; the header here may be older than the kernel.
constexpr std::uint32_t kMapIsLinked = 1U << 13;  // BPF_F_LINK
constexpr std::uint32_t kAttachStructOps = 44;    // BPF_STRUCT_OPS

// PROGRAM_NAME of bpf/kernel.h.
constexpr std::string_view kPlaceholder("quicgym-program\0", 16);
constexpr std::size_t kMostMessageBytes = 4000;

// What libbpf says while an object is opened and loaded. libbpf has one print function for the process.
thread_local std::string* messages = nullptr;

int keep_message(enum libbpf_print_level level, const char* format, std::va_list arguments) {
    if (messages == nullptr || level == LIBBPF_DEBUG || messages->size() > kMostMessageBytes) return 0;
    char text[2048];
    const int length = std::vsnprintf(text, sizeof text, format, arguments);
    messages->append(text, std::min<std::size_t>(std::max(length, 0), sizeof text - 1));
    return length;
}

class Messages {
public:
    Messages() {
        libbpf_set_print(keep_message);
        messages = &text_;
    }
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;
    ~Messages() { messages = nullptr; }

    [[noreturn]] void fail(int error, const std::string& what) const {
        throw std::system_error(error < 0 ? -error : error, std::generic_category(),
                                text_.empty() ? what : what + "\n" + text_);
    }

private:
    std::string text_;
};

// The name is data of the object.
void put_name(std::string& object, const std::string& name) {
    const std::size_t place = object.find(kPlaceholder);
    if (place == std::string::npos || object.find(kPlaceholder, place + 1) != std::string::npos)
        throw std::invalid_argument("the object does not have the program's name at one place");
    std::string padded = name;
    padded.resize(kPlaceholder.size());
    object.replace(place, padded.size(), padded);
}

// Where a variable is in the section of constants.
struct Place {
    std::size_t offset;
    std::size_t elements;  // 1 where it is no array
    std::size_t element_bytes;
};

const btf_type* without_qualifiers(const btf* types, std::uint32_t number) {
    const btf_type* type = btf__type_by_id(types, number);
    while (btf_is_mod(type) || btf_is_typedef(type)) type = btf__type_by_id(types, type->type);
    return type;
}

Place find_constant(const btf* types, const std::string& name) {
    const int number = btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
    if (number > 0) {
        const btf_type* section = btf__type_by_id(types, static_cast<std::uint32_t>(number));
        const btf_var_secinfo* variables = btf_var_secinfos(section);
        for (std::size_t i = 0; i < btf_vlen(section); ++i) {
            const btf_type* variable = btf__type_by_id(types, variables[i].type);
            if (name != btf__name_by_offset(types, variable->name_off)) continue;
            const btf_type* type = without_qualifiers(types, variable->type);
            const std::size_t elements = btf_is_array(type) ? btf_array(type)->nelems : 1;
            return {variables[i].offset, elements, variables[i].size / elements};
        }
    }
    throw std::invalid_argument("the program has no constant '" + name + "'");
}

void set_constants(bpf_object* object, const Constants& constants) {
    if (constants.empty()) return;
    std::size_t size = 0;
    char* section = nullptr;
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object) {
        if (!std::string_view(bpf_map__name(map)).ends_with(".rodata")) continue;
        section = static_cast<char*>(const_cast<void*>(bpf_map__initial_value(map, &size)));
    }
    for (const auto& [name, values] : constants) {
        const Place place = find_constant(bpf_object__btf(object), name);
        if (section == nullptr || values.size() > place.elements ||
            place.element_bytes > sizeof(std::int64_t) ||
            place.offset + place.elements * place.element_bytes > size)
            throw std::invalid_argument("constant '" + name + "' does not have room for the values");
        char* to = section + place.offset;
        // Little-endian, as BPF is where this process runs.
        for (const std::int64_t value : values)
            to = std::copy_n(reinterpret_cast<const char*>(&value), place.element_bytes, to);
    }
}

bpf_map* registration_of(bpf_object* object) {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object) {
        if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS) return map;
    }
    throw std::invalid_argument("the object has no congestion controller");
}

std::uint32_t most_verified_instructions(const bpf_object* object) {
    std::uint32_t most = 0;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) {
        bpf_prog_info info{};
        std::uint32_t bytes = sizeof info;
        if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes) == 0)
            most = std::max(most, info.verified_insns);
    }
    return most;
}

// bpf_link_create of libbpf before 1.2 does not know struct_ops.
int create_link(int map) {
    struct {
        std::uint32_t map_fd, target, attach_type, flags;
        char rest[128];
    } request{static_cast<std::uint32_t>(map), 0, kAttachStructOps, 0, {}};
    const long link = syscall(SYS_bpf, BPF_LINK_CREATE, &request, sizeof request);
    return link < 0 ? -errno : static_cast<int>(link);
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

void Descriptor::reset() {
    if (number_ >= 0) close(std::exchange(number_, -1));
}

SharedMemory::SharedMemory(int map, std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (data_ == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "a map of the program cannot be shared");
}

SharedMemory::~SharedMemory() {
    munmap(data_, bytes_);
}

void Program::CloseObject::operator()(bpf_object* object) const {
    bpf_object__close(object);
}

Program::Program(std::string object, const std::string& name, const Constants& constants,
                 const std::map<std::string, std::string>& contents) {
    if (name.empty() || name.size() >= kPlaceholder.size())
        throw std::invalid_argument("name = '" + name + "'; give 1 to 15 characters");
    put_name(object, name);
    const Messages said;
    object_.reset(bpf_object__open_mem(object.data(), object.size(), nullptr));
    if (!object_) said.fail(errno, "the program cannot be opened");
    set_constants(object_.get(), constants);
    bpf_map* const registration = registration_of(object_.get());
    bpf_map__set_map_flags(registration, bpf_map__map_flags(registration) | kMapIsLinked);
    if (const int error = bpf_object__load(object_.get()); error != 0)
        said.fail(error, "the kernel refuses the program");
    verified_instructions_ = most_verified_instructions(object_.get());
    const std::uint32_t first = 0;
    for (const auto& [map_name, bytes] : contents) {
        if (bytes.size() != bpf_map__value_size(find_map(map_name.c_str())))
            throw std::invalid_argument("map '" + map_name + "' has another size");
        if (bpf_map_update_elem(map(map_name.c_str()), &first, bytes.data(), BPF_ANY) != 0)
            said.fail(errno, "map '" + map_name + "' cannot be filled");
    }
    // With kMapIsLinked this only hands the hooks over; the link registers them.
    bpf_link* const handed_over = bpf_map__attach_struct_ops(registration);
    if (handed_over == nullptr) said.fail(errno, "the kernel refuses the hooks");
    bpf_link__disconnect(handed_over);
    bpf_link__destroy(handed_over);
    const int link = create_link(bpf_map__fd(registration));
    if (link < 0) said.fail(link, "the kernel does not register '" + name + "'");
    link_ = Descriptor(link);
}

Program::~Program() = default;

bpf_map* Program::find_map(const char* name) const {
    bpf_map* const found = bpf_object__find_map_by_name(object_.get(), name);
    if (found == nullptr) throw std::invalid_argument(std::string("the program has no map '") + name + "'");
    return found;
}

int Program::map(const char* name) const {
    return bpf_map__fd(find_map(name));
}

std::size_t Program::map_bytes(const char* name) const {
    const bpf_map* const found = find_map(name);
    return std::size_t{bpf_map__value_size(found)} * bpf_map__max_entries(found);
}

}  // namespace quicgym::linux_tcp
