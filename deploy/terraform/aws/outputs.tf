output "hosts_toml" {
  description = "The topology: terraform output -raw hosts_toml > hosts.toml"
  value = join("\n", [for name, machine in local.machines : <<-EOT
    [[host]]
    name = "${name}"
    roles = ${jsonencode(machine.roles)}
    ssh = "admin@${aws_instance.host[name].public_ip}"
    address = "${aws_instance.host[name].private_ip}"
  EOT
  ])
}

output "known_hosts" {
  description = "Host keys: terraform output -raw known_hosts >> ~/.ssh/known_hosts"
  value = join("", [for name, machine in local.machines :
    "${aws_instance.host[name].public_ip} ${trimspace(tls_private_key.host[name].public_key_openssh)}\n"
  ])
}
