# The machines of the published documents, on AWS, and the topology that weir runs on them: see docs/cloud.md.
# All are in one network and, where their type allows it, one placement group: next to each other. Only the roles may speak to
# each other, and only your address may speak SSH to them. Host keys are made here, so that the first connection is checked, too.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.0"
    }
    tls = {
      source  = "hashicorp/tls"
      version = "~> 4.0"
    }
  }
}

provider "aws" {
  region = local.region
  default_tags {
    tags = { Project = "weir", Document = var.document }
  }
}

locals {
  document = var.documents[var.document]
  machines = local.document.machines
  region   = coalesce(var.region, local.document.region)
  hours    = coalesce(var.hours, local.document.hours)
  # A burstable type cannot be in a placement group.
  grouped = { for name, machine in local.machines : name => !startswith(machine.type, "t") }
}

data "aws_availability_zones" "all" {
  state = "available"
}

# Debian 12, whose own account this is.
data "aws_ami" "debian" {
  most_recent = true
  owners      = ["136693071363"]
  filter {
    name   = "name"
    values = ["debian-12-amd64-*"]
  }
}

resource "aws_vpc" "weir" {
  cidr_block           = "10.42.0.0/24"
  enable_dns_support   = true
  enable_dns_hostnames = true
}

resource "aws_subnet" "weir" {
  vpc_id            = aws_vpc.weir.id
  cidr_block        = aws_vpc.weir.cidr_block
  availability_zone = coalesce(var.zone, data.aws_availability_zones.all.names[0])
}

resource "aws_internet_gateway" "weir" {
  vpc_id = aws_vpc.weir.id
}

resource "aws_route_table" "weir" {
  vpc_id = aws_vpc.weir.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.weir.id
  }
}

resource "aws_route_table_association" "weir" {
  subnet_id      = aws_subnet.weir.id
  route_table_id = aws_route_table.weir.id
}

resource "aws_security_group" "weir" {
  name_prefix = "weir-"
  vpc_id      = aws_vpc.weir.id
  ingress {
    description = "traffic between the roles"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    self        = true
  }
  ingress {
    description = "SSH from the user's address"
    protocol    = "tcp"
    from_port   = 22
    to_port     = 22
    cidr_blocks = [var.ssh_from]
  }
  egress {
    description = "packages and products"
    protocol    = "-1"
    from_port   = 0
    to_port     = 0
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_placement_group" "weir" {
  name     = "weir-${var.document}"
  strategy = "cluster"
}

resource "aws_key_pair" "user" {
  key_name_prefix = "weir-"
  public_key      = file(pathexpand(var.ssh_public_key))
}

resource "tls_private_key" "host" {
  for_each  = local.machines
  algorithm = "ED25519"
}

resource "aws_instance" "host" {
  for_each                             = local.machines
  ami                                  = data.aws_ami.debian.id
  instance_type                        = each.value.type
  subnet_id                            = aws_subnet.weir.id
  vpc_security_group_ids               = [aws_security_group.weir.id]
  placement_group                      = local.grouped[each.key] ? aws_placement_group.weir.name : null
  key_name                             = aws_key_pair.user.key_name
  associate_public_ip_address          = true
  instance_initiated_shutdown_behavior = "terminate"
  tags                                 = { Name = "weir-${each.key}" }
  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    volume_type = "gp3"
    volume_size = each.value.disk
  }
  # A machine that is forgotten ends by itself.
  user_data = <<-EOT
    #cloud-config
    ssh_keys:
      ed25519_private: |
        ${indent(4, tls_private_key.host[each.key].private_key_openssh)}
      ed25519_public: ${trimspace(tls_private_key.host[each.key].public_key_openssh)}
    runcmd:
      - shutdown -h +${local.hours * 60}
  EOT
}
